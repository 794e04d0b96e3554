-- ---------------------------------------------------------------- Wireshark

if not Proto then
    return { connection_packet = connection_packet, message_of = message_of, numbered = numbered, reliable = reliable, netcode = netcode, netcode_parts = netcode_parts }
end

local tickwire = Proto("tickwire", "Tickwire")
local opened = Proto("tickwire_opened", "Tickwire (opened)")
tickwire.prefs.ports = Pref.range("UDP ports", "", "Ports of servers, for captures that don't have their clients' requests", 65535)

local MAKE = {
    bool = ProtoField.bool, uint = ProtoField.uint32, int = ProtoField.int32, float = ProtoField.double,
    text = ProtoField.string, octets = ProtoField.bytes,
}
local fields, texts = {}, {}
for _, described in ipairs(LAYOUT.filters) do
    fields[described.filter] = MAKE[described.type](described.filter, described.name)
    texts[described.filter] = described.type == "text"
end
for _, described in ipairs(PROTOCOL and PROTOCOL.filters or {}) do
    fields[described.filter] = MAKE[described.type](described.filter, described.name)
    texts[described.filter] = described.type == "text"
end
local declared = {}
for _, made in pairs(fields) do declared[#declared + 1] = made end
tickwire.fields = declared

local malformed = ProtoExpert.new("tickwire.refused", "Not what the standard allows", expert.group.MALFORMED, expert.severity.ERROR)
tickwire.experts = { malformed }

local function show(tree, tvb, nodes)
    for _, node in ipairs(nodes) do
        local first = math.floor(node.from / 8)
        local range = tvb(first, math.min(math.max(math.ceil(node.to / 8) - first, 0), tvb:len() - first))
        -- What has a count of its items for a value is shown without: the field is the items'.
        local declared = (texts[node.field] or type(node.value) ~= "string") and fields[node.field] or nil
        local item
        if node.value == nil then
            item = tree:add(range, node.name .. ": none")
        elseif declared and not (node.kids and node.value == "") then
            item = tree:add(declared, range, texts[node.field] and tostring(node.value) or node.value)
            item:set_text(node.name .. ": " .. tostring(node.value))
        elseif declared then
            item = tree:add(declared, range, node.name)
            item:set_text(node.name)
        else
            item = tree:add(range, node.name .. (node.value ~= "" and ": " .. tostring(node.value) or ""))
        end
        if node.field == "tickwire.malformed" then item:add_proto_expert_info(malformed, node.value) end
        if node.kids then show(item, tvb, node.kids) end
    end
end

-- Fragments by their packet, and whole packets by the frame that completed them.
local pending, complete = {}, {}
-- The same for messages in fragments, and whole messages.
local parts_of, whole_messages = {}, {}
function tickwire.init() pending, complete, parts_of, whole_messages = {}, {}, {}, {} end

local function direction(pinfo)
    return table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port }, " ")
end

-- The messages that the fragments in these nodes complete. An id is used again when its message has long been whole.
local function completed(pinfo, nodes)
    if pinfo.visited then return whole_messages[pinfo.number] or {} end
    local whole = {}
    for _, node in ipairs(nodes) do
        local part = node.part
        if part then
            local key = direction(pinfo) .. " " .. part.channel .. " " .. part.id
            local message = parts_of[key]
            if not message or message.bits ~= part.bits or message.number ~= part.number then
                message = { number = part.number, bits = part.bits, count = 0, data = {} }
                parts_of[key] = message
            end
            if not message.data[part.index] then
                message.data[part.index] = part.data
                message.count = message.count + 1
            end
            if message.count == part.count then
                parts_of[key] = nil
                whole[#whole + 1] = { number = part.number, bits = part.bits,
                                      bytes = table.concat(message.data, "", 0, part.count - 1) }
            end
        end
    end
    whole_messages[pinfo.number] = #whole > 0 and whole or nil
    return whole
end

local function reassembled(pinfo, found, data)
    local number = pinfo.number
    if pinfo.visited then return complete[number] end
    local key = direction(pinfo) .. " " .. found.sequence
    local packet = pending[key]
    if not packet or packet.last ~= found.last then
        packet = { last = found.last, count = 0, data = {} }
        pending[key] = packet
    end
    if not packet.data[found.fragment] then
        packet.data[found.fragment] = data
        packet.count = packet.count + 1
        packet.ack = packet.ack or found.ack
    end
    if packet.count <= packet.last then return nil end
    pending[key] = nil
    local whole = { bytes = table.concat(packet.data, "", 0, packet.last), ack = packet.ack }
    complete[number] = whole
    return whole
end

local function dissect_payload(tvb, pinfo, tree, at, number)
    local bytes = tvb:raw(at)
    local is_yojimbo = PROTOCOL and PROTOCOL.framing == "yojimbo"
    local found = is_yojimbo and reliable(bytes) or numbered(bytes, number)
    local inner = tvb(at):tvb()
    show(tree:add(tickwire, inner(), "Packet" .. (found.sequence and " " .. found.sequence or "")), inner, found.nodes)
    if not found.body_at then return end
    local body, ack, text = bytes:sub(found.body_at + 1), found.ack, ""
    local source = found.body_at < inner:len() and inner(found.body_at):tvb() or nil
    if found.fragment then
        text = " fragment " .. found.fragment .. " of " .. found.last + 1
        local whole = reassembled(pinfo, found, body)
        if not whole then
            pinfo.cols.info:append(" " .. found.sequence .. text)
            return
        end
        body, ack = whole.bytes, whole.ack
        source = ByteArray.new(body, true):tvb("Packet of " .. found.last + 1 .. " fragments")
    end
    local told = {}
    local nodes = connection_packet(body, ack, told)
    if source then show(tree:add(tickwire, source(), "Connection"), source, nodes) end
    for _, whole in ipairs(completed(pinfo, nodes)) do
        local bytes = ByteArray.new(whole.bytes, true):tvb("Message of fragments")
        show(tree:add(tickwire, bytes(), "Message of fragments"), bytes, message_of(whole.number, whole.bits, whole.bytes))
    end
    pinfo.cols.info:append(" " .. found.sequence .. text .. (#told > 0 and ": " .. table.concat(told, ", ") or ""))
end

local function dissect(tvb, pinfo, tree, is_opened)
    local bytes = tvb:raw()
    local packet = netcode(bytes, is_opened)
    if not packet then return 0 end
    pinfo.cols.protocol = "Tickwire"
    pinfo.cols.info = packet.kind.name
    local item = tree:add(tickwire, tvb(), "Tickwire " .. packet.kind.name)
    item:add(fields["tickwire.netcode.kind"], tvb(0, 1), packet.kind.name)
    if packet.sequence then
        item:add(fields["tickwire.netcode.sequence"], tvb(1, packet.sequence_bytes), packet.sequence)
    end
    if packet.kind.name == "request" or is_opened then
        show(item, tvb, netcode_parts(bytes, packet))
        if packet.kind.name == "payload" then dissect_payload(tvb, pinfo, item, packet.body_at, packet.sequence) end
    else
        local length = tvb:len() - packet.body_at - LAYOUT.tag_bytes
        if length > 0 then item:add(fields["tickwire.netcode.sealed"], tvb(packet.body_at, length)) end
        item:add(fields["tickwire.netcode.tag"], tvb(tvb:len() - LAYOUT.tag_bytes))
    end
    return tvb:len()
end

function tickwire.dissector(tvb, pinfo, tree) return dissect(tvb, pinfo, tree, false) end
function opened.dissector(tvb, pinfo, tree) return dissect(tvb, pinfo, tree, true) end

-- A request is told from anything else by its version; then all of its conversation is ours.
tickwire:register_heuristic("udp", function(tvb, pinfo, tree)
    local packet = netcode(tvb:raw(), false)
    if not packet or packet.kind.name ~= "request" then return false end
    pinfo.conversation = tickwire
    return dissect(tvb, pinfo, tree, false) > 0
end)

local ports = nil
function tickwire.prefs_changed()
    local udp = DissectorTable.get("udp.port")
    if ports and ports ~= "" then udp:remove(ports, tickwire) end
    ports = tickwire.prefs.ports
    if ports ~= "" then udp:add(ports, tickwire) end
end
DissectorTable.get("udp.port"):add_for_decode_as(tickwire)
