-- Tickwire's packets for Wireshark: written by `tickwire capture dissector`.
--
-- First comes a reader that knows nothing of Wireshark: bytes in, a tree of named values with their bits out. It walks
-- the tables below. Behind it, what shows such a tree in Wireshark.

local LAYOUT = --[[LAYOUT]]
local PROTOCOL = --[[PROTOCOL]]

-- ---------------------------------------------------------------- bits

local unpack = table.unpack or unpack

local Reader = {}
Reader.__index = Reader

-- Reads `bytes` from bit `at`, 0 unless said, the least significant bit of each byte first.
local function reader_of(bytes, at)
    return setmetatable({ bytes = bytes, at = at or 0, last = #bytes * 8 }, Reader)
end

local function refuse(why)
    error({ refused = why }, 0)
end

-- A number of up to 53 bits.
function Reader:bits(n)
    if self.at + n > self.last then
        refuse("ends too early")
    end
    local value, scale, at = 0, 1, self.at
    while n > 0 do
        local within = at % 8
        local take = math.min(8 - within, n)
        local byte = self.bytes:byte((at - within) / 8 + 1)
        value = value + math.floor(byte / 2 ^ within) % 2 ^ take * scale
        scale, at, n = scale * 2 ^ take, at + take, n - take
    end
    self.at = at
    return value
end

function Reader:flag()
    return self:bits(1) == 1
end

function Reader:align()
    if self.at % 8 > 0 and self:bits(8 - self.at % 8) ~= 0 then
        refuse("the filling before aligned bytes is not zero")
    end
end

function Reader:octets(count)
    self:align()
    if self.at + count * 8 > self.last then
        refuse("ends too early")
    end
    local first = self.at / 8
    self.at = self.at + count * 8
    return self.bytes:sub(first + 1, first + count)
end

-- A number of at least 1 on the ladder of serialize's relative integers.
function Reader:ladder()
    for _, tier in ipairs(LAYOUT.ladder) do
        if self:flag() then
            local value = tier.first + (tier.bits > 0 and self:bits(tier.bits) or 0)
            return value <= tier.last and value or refuse("a difference is beyond its tier")
        end
    end
    refuse("a difference is larger than what it counts can be")
end

-- Bits to tell `count` things apart.
local function name_bits(count)
    local bits = 0
    while 2 ^ bits < count do
        bits = bits + 1
    end
    return bits
end

-- Bytes that must be UTF-8.
function Reader:text(count)
    local bytes, at = self:octets(count), 1
    while at <= #bytes do
        local lead = bytes:byte(at)
        local more = lead < 0x80 and 0 or lead >= 0xC2 and lead < 0xE0 and 1 or lead >= 0xE0 and lead < 0xF0 and 2
            or lead >= 0xF0 and lead < 0xF5 and 3
        if lead == 0 or not more or not bytes:sub(at + 1, at + more):find("^" .. ("[\128-\191]"):rep(more) .. "$") then
            refuse("a text is not UTF-8")
        end
        at = at + 1 + more
    end
    return bytes
end

-- A length of at most `most`.
function Reader:length(most)
    local bits = name_bits(most + 1)
    local value = bits > 0 and self:bits(bits) or 0
    return value <= most and value or refuse("something is longer than it may be")
end

local function hex(text)
    return (text:gsub(".", function(byte) return string.format("%02x", byte:byte()) end))
end

-- ---------------------------------------------------------------- large numbers: eight limbs of 16 bits, lowest first

local function limbs(reader, bits)
    local found = {}
    for i = 1, 8 do
        local take = math.max(0, math.min(16, bits - (i - 1) * 16))
        found[i] = take > 0 and reader:bits(take) or 0
    end
    return found
end

local function sum(a, b)
    local result, carry = {}, 0
    for i = 1, 8 do
        local limb = a[i] + b[i] + carry
        carry = limb >= 65536 and 1 or 0
        result[i] = limb % 65536
    end
    return result
end

local function decimal(number, signed)
    local minus = ""
    if signed and number[8] >= 32768 then
        local flipped = {}
        for i = 1, 8 do flipped[i] = 65535 - number[i] end
        number, minus = sum(flipped, { 1, 0, 0, 0, 0, 0, 0, 0 }), "-"
    end
    local rest, text = { unpack(number) }, ""
    repeat
        local remainder, some = 0, false
        for i = 8, 1, -1 do
            local value = remainder * 65536 + rest[i]
            rest[i], remainder = math.floor(value / 10000), value % 10000
            some = some or rest[i] > 0
        end
        text = (some and string.format("%04d", remainder) or string.format("%d", remainder)) .. text
    until not some
    return minus .. text
end

-- ---------------------------------------------------------------- floats

local function single(bits)
    local sign = bits >= 2 ^ 31 and -1 or 1
    local exponent, fraction = math.floor(bits / 2 ^ 23) % 256, bits % 2 ^ 23
    if exponent == 255 then return fraction == 0 and sign * math.huge or 0 / 0 end
    if exponent == 0 then return sign * fraction * 2 ^ -149 end
    return sign * (1 + fraction / 2 ^ 23) * 2 ^ (exponent - 127)
end

local function double(low, high)
    local sign = high >= 2 ^ 31 and -1 or 1
    local exponent, fraction = math.floor(high / 2 ^ 20) % 2048, high % 2 ^ 20 * 2 ^ 32 + low
    if exponent == 2047 then return fraction == 0 and sign * math.huge or 0 / 0 end
    if exponent == 0 then return sign * fraction * 2 ^ -52 * 2 ^ -1022 end
    return sign * (1 + fraction / 2 ^ 52) * 2 ^ (exponent - 1023)
end

local function floats(values)
    local texts = {}
    for i, value in ipairs(values) do texts[i] = string.format("%.6g", value) end
    return "(" .. table.concat(texts, ", ") .. ")"
end

local function steps(reader, kind)
    local step = kind.bits > 0 and reader:bits(kind.bits) or 0
    if step > kind.last then refuse("a step is beyond the last") end
    return kind.lo + step * kind.step
end

local function level(reader, bits, reach)
    local most = 2 ^ (bits - 1) - 1
    local read = reader:bits(bits)
    if read > 2 * most then refuse("a level is beyond its reach") end
    return (read - most) / most * reach
end

local function smallest_three(reader, bits)
    local largest, others, squares = reader:bits(2), {}, 0
    for i = 1, 3 do
        others[i] = level(reader, bits, math.sqrt(0.5))
        squares = squares + others[i] * others[i]
    end
    table.insert(others, largest + 1, math.sqrt(math.max(0, 1 - squares)))
    return others
end

-- ---------------------------------------------------------------- fields of messages

-- Each gives a value, and for what is made of parts those too. `path` is the field's name for filters.
local KINDS = {}

local function field(reader, kind, name, path)
    local from = reader.at
    local value, kids = KINDS[kind.kind](reader, kind, path)
    return { name = name, field = path, value = value, from = from, to = reader.at, kids = kids }
end

function KINDS.bool(reader) return reader:flag() end
function KINDS.number(reader, kind)
    local offset = kind.bits > 0 and reader:bits(kind.bits) or 0
    if offset > kind.span then refuse("a number is out of its range") end
    return kind.lo + offset
end
function KINDS.large(reader, kind) return decimal(sum(limbs(reader, kind.bits), kind.lo), kind.signed) end
function KINDS.float(reader) return single(reader:bits(32)) end
function KINDS.double(reader)
    local low = reader:bits(32)
    return double(low, reader:bits(32))
end
function KINDS.quantized(reader, kind) return reader:bits(kind.bits) / kind.last * kind.delta + kind.lo end
function KINDS.fixed(reader, kind) return (kind.lo + (kind.bits > 0 and reader:bits(kind.bits) or 0)) / kind.scale end
function KINDS.text(reader, kind) return reader:text(reader:length(kind.max)) end
function KINDS.data(reader, kind) return hex(reader:octets(reader:length(kind.max))) end
function KINDS.wide(reader, kind)
    local text, high = {}, nil
    for _ = 1, reader:length(kind.max) do
        local unit = reader:bits(32)
        if unit >= 0xD800 and unit < 0xDC00 then
            high = unit
        else
            local code = high and 0x10000 + (high - 0xD800) * 0x400 + unit - 0xDC00 or unit
            high = nil
            if code < 0x80 then
                text[#text + 1] = string.char(code)
            else
                local bytes, most = {}, 0x40
                repeat
                    table.insert(bytes, 1, string.char(0x80 + code % 0x40))
                    code, most = math.floor(code / 0x40), most / 2
                until code < most
                text[#text + 1] = string.char(256 - 2 * most + code) .. table.concat(bytes)
            end
        end
    end
    return table.concat(text)
end
function KINDS.enum(reader, kind)
    local place = kind.bits > 0 and reader:bits(kind.bits) or 0
    return kind.names[place + 1] or refuse("there is no such member")
end
function KINDS.flags(reader, kind)
    local set = {}
    for _, name in ipairs(kind.names) do
        if reader:flag() then set[#set + 1] = name end
    end
    return #set > 0 and table.concat(set, "|") or "0"
end
function KINDS.angle(reader, kind) return steps(reader, kind) end
function KINDS.vector(reader, kind)
    local values = {}
    for i = 1, kind.axes do values[i] = steps(reader, kind) end
    return floats(values)
end
function KINDS.direction(reader, kind)
    local x = level(reader, kind.bits, 1)
    local y = level(reader, kind.bits, 1)
    local z = 1 - math.abs(x) - math.abs(y)
    if z < 0 then
        x, y = (1 - math.abs(y)) * (x < 0 and -1 or 1), (1 - math.abs(x)) * (y < 0 and -1 or 1)
    end
    local length = math.sqrt(x * x + y * y + z * z)
    return floats({ x / length, y / length, z / length })
end
function KINDS.rotation(reader, kind) return floats(smallest_three(reader, kind.bits)) end
function KINDS.signed_rotation(reader)
    local found, squares = {}, 0
    for i = 1, 3 do
        found[i] = level(reader, 16, 1)
        squares = squares + found[i] * found[i]
    end
    found[4] = math.sqrt(math.max(0, 1 - squares)) * (reader:flag() and -1 or 1)
    return floats(found)
end
function KINDS.transform(reader, kind, path)
    if reader:flag() then return "identity" end
    local kids = { field(reader, { kind = "vector", axes = 3, bits = kind.bits, last = kind.last, lo = kind.lo,
                                   step = kind.step }, "translation", path .. ".translation") }
    if reader:flag() then
        kids[2] = field(reader, { kind = "rotation", bits = kind.rotation }, "rotation", path .. ".rotation")
    end
    if reader:flag() then
        local from, scale = reader.at, {}
        for i = 1, reader:flag() and 1 or 3 do scale[i] = single(reader:bits(32)) end
        kids[#kids + 1] = { name = "scale", field = path .. ".scale", value = floats(scale), from = from, to = reader.at }
    end
    return "moved", kids
end
function KINDS.common(reader, kind, path)
    if not reader:flag() then return KINDS[kind.item.kind](reader, kind.item, path) end
    local which = kind.words[2] and reader:flag() and 2 or 1
    return KINDS[kind.item.kind](reader_of(kind.words[which]), kind.item, path)
end
function KINDS.optional(reader, kind, path)
    if not reader:flag() then return nil end
    return KINDS[kind.item.kind](reader, kind.item, path)
end
function KINDS.list(reader, kind, path)
    local kids, count = {}, reader:length(kind.max)
    for i = 1, count do kids[i] = field(reader, kind.item, tostring(i - 1), path) end
    return count .. (count == 1 and " item" or " items"), kids
end
function KINDS.sparse(reader, kind, path)
    local kids, count, open = {}, reader:length(kind.slots), 0
    for i = 1, count do
        local reach = kind.slots - open - (count - i + 1)
        local bits = name_bits(reach + 1)
        local slot = open + (bits > 0 and reader:bits(bits) or 0)
        if slot - open > reach then refuse("a slot is beyond the last") end
        kids[i] = field(reader, kind.item, "[" .. slot .. "]", path)
        open = slot + 1
    end
    return count .. (count == 1 and " entry" or " entries"), kids
end
function KINDS.message(reader, kind, path)
    local kids = {}
    for i, of in ipairs(kind.fields) do kids[i] = field(reader, of.type, of.name, path .. "." .. of.filter) end
    return "", kids
end

-- ---------------------------------------------------------------- the connection packet

-- Parts that the layout describes by tables: numbers one behind the other.
local function parts(reader, described, path, into)
    local known = {}
    for _, part in ipairs(described) do
        local from, value = reader.at, nil
        if part.type == "bits" then
            value = reader:bits(part.bits)
        elseif part.type == "hex" then
            local low = reader:bits(32)
            value = string.format("0x%08x%08x", reader:bits(part.bits - 32), low)
        elseif part.type == "u64" then
            value = decimal(limbs(reader, 64))
        elseif part.type == "ladder" then
            value = reader:ladder()
        elseif part.type == "channel" then
            local bits = name_bits(#PROTOCOL.channels)
            value = bits > 0 and reader:bits(bits) or 0
            if value >= #PROTOCOL.channels then refuse("there is no such channel") end
        elseif part.type == "octets" then
            value = hex(reader:octets(part.count or known[part.length]))
        elseif part.type == "string" then
            value = reader:text(reader:length(part.most))
        end
        if part.type == "bits" and (value > (part.most or value) or value < (part.least or value)) then
            refuse(part.name .. " is out of its bounds")
        end
        known[part.name] = value
        local shown = part.names and part.names[value] and (part.names[value] .. " (" .. value .. ")") or value
        if part.unit then shown = value * part.unit end
        into[#into + 1] = { name = part.name, field = path .. "." .. part.name, value = shown, from = from, to = reader.at }
    end
    return known
end

local function message(reader, channel, prefix, told)
    local from, config = reader.at, PROTOCOL.channels[channel + 1]
    local node = { kids = prefix, from = prefix[1] and prefix[1].from or from }
    if config.kind == "payload" then
        local bits = reader:length(8 * config.max_bytes)
        local start = reader.at
        if reader.at + bits > reader.last then refuse("ends too early") end
        reader.at = reader.at + bits
        node.name = "payload"
        node.value = bits .. " bits"
        node.field = "tickwire.payload"
        node.kids[#node.kids + 1] = { name = "length", field = "tickwire.payload.bits", value = bits, from = from, to = start }
    else
        local bits = name_bits(#PROTOCOL.messages)
        local number = bits > 0 and reader:bits(bits) or 0
        local class = PROTOCOL.messages[number + 1] or refuse("there is no such message type")
        node.name, node.value, node.field = class.name, "", "tickwire.message"
        node.class, node.block = class.name, class.block
        if class.opaque and PROTOCOL.framing == "yojimbo" then
            -- There is no length before it: what is behind it can't be found either.
            node.kids[#node.kids + 1] = { name = "body, and all behind it", field = "tickwire.rest", from = reader.at,
                                          value = "only its own class can read it", to = reader.last }
            reader.at, reader.lost = reader.last, true
        elseif class.opaque then
            local length = reader:length(8 * class.opaque)
            if reader.at + length > reader.last then refuse("ends too early") end
            node.kids[#node.kids + 1] = { name = "body", field = "tickwire.opaque_bits", value = length, from = reader.at,
                                          to = reader.at + length }
            reader.at = reader.at + length
        else
            for _, of in ipairs(class.fields) do
                node.kids[#node.kids + 1] = field(reader, of.type, of.name, "tickwire." .. class.filter .. "." .. of.filter)
            end
        end
        told[#told + 1] = class.name
    end
    node.to = reader.at
    return node
end

local function entry(reader, told, above)
    local node = { name = "entry", field = "tickwire.entry", kids = {}, from = reader.at }
    local channel = parts(reader, { { name = "channel", type = "channel" } }, "tickwire", node.kids).channel
    if channel <= above then refuse("channels don't ascend") end
    local config = PROTOCOL.channels[channel + 1]
    node.channel = channel
    node.value = config.kind .. " channel " .. channel
    local previous
    repeat
        if config.kind == "chunks" then
            local item = { name = "item", field = "tickwire.chunk", from = reader.at, kids = {} }
            local known = parts(reader, LAYOUT.chunk_item, "tickwire.chunk", item.kids)
            local described = LAYOUT.chunk_items[known.kind]
            item.value = described.name .. " " .. known.number
            local more = parts(reader, described.parts, "tickwire.chunk", item.kids)
            if more.verdict == 0 then
                local runs = 0
                while reader:flag() do
                    runs = runs + 1
                    if runs > LAYOUT.most_runs then refuse("an answer has too many runs") end
                    parts(reader, LAYOUT.chunk_run, "tickwire.chunk", item.kids)
                end
            end
            item.to = reader.at
            node.kids[#node.kids + 1] = item
            told[#told + 1] = "chunk " .. described.name
        else
            local prefix, from = {}, reader.at
            if LAYOUT.with_ids[config.kind] then
                previous = previous and (previous + reader:ladder()) % 65536 or reader:bits(16)
                prefix[1] = { name = "id", field = "tickwire.message_id", value = previous, from = from, to = reader.at }
            elseif config.keys then
                local key = reader:length(config.keys - 1)
                prefix[1] = { name = "key", field = "tickwire.key", value = key, from = from, to = reader.at }
            end
            node.kids[#node.kids + 1] = message(reader, channel, prefix, told)
        end
    until not reader:flag()
    node.to = reader.at
    return node
end

-- A number from 1 to `most`, as a named part.
local function count_of(reader, name, most, into)
    local from = reader.at
    local value = 1 + reader:length(most - 1)
    into[#into + 1] = { name = name, field = "tickwire." .. name, value = value, from = from, to = reader.at }
    return value
end

-- An entry of yojimbo's framing: messages behind all of their ids, or a piece of a block.
local function yojimbo_entry(reader, told)
    local node = { name = "entry", field = "tickwire.entry", kids = {}, from = reader.at }
    local channel = parts(reader, { { name = "channel", type = "channel" } }, "tickwire", node.kids).channel
    local config = PROTOCOL.channels[channel + 1]
    local reliable = config.kind == "reliable_ordered"
    node.value = config.kind .. " channel " .. channel
    local function put(name, value, from)
        node.kids[#node.kids + 1] = { name = name, field = "tickwire." .. name, value = value, from = from, to = reader.at }
    end
    if reader:flag() then
        if not reliable or not config.blocks then refuse("a piece of a block on a channel that has none") end
        local from = reader.at
        put("message_id", reader:bits(16), from)
        local count = count_of(reader, "block.fragments", math.ceil(config.max_block / config.block_fragment), node.kids)
        from = reader.at
        local index = reader:length(count - 1)
        put("block.fragment", index, from)
        local size = count_of(reader, "block.bytes", config.block_fragment, node.kids)
        from = reader.at
        put("block.data", hex(reader:octets(size)), from)
        if index == 0 then node.kids[#node.kids + 1] = message(reader, channel, {}, told) end
        told[#told + 1] = "block " .. index + 1 .. "/" .. count
    elseif reader:flag() then
        local count = count_of(reader, "messages", config.max_messages, node.kids)
        local ids, from = {}, reader.at
        for i = 1, reliable and count or 0 do
            from = reader.at
            ids[i] = i == 1 and reader:bits(16) or (ids[i - 1] + reader:ladder()) % 65536
            put("message_id", ids[i], from)
        end
        for _ = 1, count do
            local carried = message(reader, channel, {}, told)
            node.kids[#node.kids + 1] = carried
            if reader.lost then break end
            if not reliable and carried.block then
                local size = count_of(reader, "block.bytes", config.max_block, node.kids)
                from = reader.at
                put("block.data", hex(reader:octets(size)), from)
            end
        end
    end
    node.to = reader.at
    return node
end

-- What is behind the last entry is ignored, as yojimbo does.
local function yojimbo_packet(reader, nodes, told)
    if reader.last == 0 then refuse("is empty") end
    for _ = 1, reader:length(#PROTOCOL.channels) do
        nodes[#nodes + 1] = yojimbo_entry(reader, told)
        if reader.lost then return end
    end
end

-- The sections of a connection packet, and in `told` the names of what it carries.
local function connection_packet(bytes, ack, told)
    local reader, nodes = reader_of(bytes), {}
    local function all()
        if PROTOCOL and PROTOCOL.framing == "yojimbo" then return yojimbo_packet(reader, nodes, told) end
        for _, section in ipairs(LAYOUT.sections) do
            local from = reader.at
            if section.needs_protocol and not PROTOCOL then
                nodes[#nodes + 1] = { name = "not decoded without the protocol", field = "tickwire.rest", value = "",
                                      from = from, to = reader.last }
                return
            end
            local at = ack and (ack - 32) % 65536
            if section.name == "entries" then
                local above = -1
                while reader:flag() do
                    nodes[#nodes + 1] = entry(reader, told, above)
                    above = nodes[#nodes].channel
                end
            elseif reader:flag() then
                local node = { name = section.name, field = "tickwire." .. section.name, value = "", kids = {}, from = from }
                nodes[#nodes + 1] = node
                local walked, above = 0, -1
                repeat
                    local known = parts(reader, section.parts, "tickwire." .. section.name, node.kids)
                    if known.channel then
                        local kind = PROTOCOL.channels[known.channel + 1].kind
                        if known.channel <= above then refuse("channels don't ascend") end
                        if not LAYOUT.with_credit[kind] then refuse("credit for a channel that has none") end
                        above = known.channel
                    end
                    if known.received then
                        walked = walked + known.missing - 1 + known.received
                        if walked > LAYOUT.most_walk then refuse("ack ranges walk too far") end
                    end
                    if section.name == "ack_ranges" and at then
                        local newest = (at - known.missing + 1) % 65536
                        local oldest = (newest - known.received + 1) % 65536
                        at = (oldest - 1) % 65536
                        node.kids[#node.kids + 1] = { name = "acked", field = "tickwire.ack_ranges.acked",
                                                      value = newest .. " to " .. oldest, from = from, to = reader.at }
                    end
                until not (section.repeated and reader:flag())
                node.to = reader.at
                if section.last then
                    told[#told + 1] = section.name
                    break
                end
            end
        end
        if reader.last - reader.at >= 8 or reader.at < reader.last and reader:bits(reader.last - reader.at) ~= 0 then
            refuse("more follows than zero filling")
        end
    end
    local fine, problem = pcall(all)
    if not fine then
        for _, node in ipairs(nodes) do node.to = node.to or math.min(reader.at, reader.last) end
        local why = type(problem) == "table" and problem.refused or tostring(problem)
        nodes[#nodes + 1] = { name = "malformed", field = "tickwire.malformed", value = why, from = math.min(reader.at, reader.last),
                              to = reader.last }
    end
    return nodes
end

-- ---------------------------------------------------------------- the reliable header, and netcode's packets

-- Numbers of whole bytes; all offsets are in bits, as above.
local function reliable(bytes)
    local reader = reader_of(bytes)
    local nodes = {}
    local function put(name, value, from)
        nodes[#nodes + 1] = { name = name, field = "tickwire.reliable." .. name, value = value, from = from, to = reader.at }
        return value
    end
    local function header(expected)
        local from = reader.at
        local prefix = put("prefix", reader:bits(8), from)
        from = reader.at
        local sequence = put("sequence", reader:bits(16), from)
        if expected and expected ~= sequence then refuse("a fragment's header has another sequence") end
        from = reader.at
        local short = math.floor(prefix / LAYOUT.reliable.short_ack) % 2 == 1
        local ack = short and (sequence - reader:bits(8)) % 65536 or reader:bits(16)
        put("ack", ack, from)
        from = reader.at
        local ack_bits = 0
        for i, flag in ipairs(LAYOUT.reliable.ack_bytes) do
            local there = math.floor(prefix / flag) % 2 == 1
            ack_bits = ack_bits + (there and reader:bits(8) or 255) * 256 ^ (i - 1)
        end
        put("ack_bits", string.format("0x%08x", ack_bits), from)
        return sequence, ack
    end
    local found = { nodes = nodes }
    local fine, problem = pcall(function()
        if #bytes > 0 and bytes:byte(1) % 2 == LAYOUT.reliable.fragment then
            reader:bits(8)
            put("fragment.prefix", LAYOUT.reliable.fragment, 0)
            found.sequence = put("fragment.sequence", reader:bits(16), 8)
            found.fragment = put("fragment.id", reader:bits(8), 24)
            found.last = put("fragment.last", reader:bits(8), 32)
            if found.fragment > found.last then refuse("a fragment is behind the last") end
            if found.fragment == 0 then
                local _, ack = header(found.sequence)
                found.ack = ack
            end
        else
            found.sequence, found.ack = header()
        end
    end)
    if not fine then
        nodes[#nodes + 1] = { name = "malformed", field = "tickwire.malformed", value = problem.refused or tostring(problem),
                              from = reader.at, to = reader.last }
        return found
    end
    found.body_at = reader.at / 8
    return found
end

-- What a netcode packet says: its kind, its sequence, where its body begins. Nil for what is none.
local function netcode(bytes, opened)
    local prefix = bytes:byte(1)
    if not prefix then return nil end
    local kind, count = LAYOUT.kinds[prefix % 16], math.floor(prefix / 16)
    if not kind then return nil end
    if kind.name == "request" then
        if prefix ~= 0 or #bytes ~= LAYOUT.request_bytes or bytes:sub(2, 14) ~= LAYOUT.version .. "\0" then return nil end
        return { kind = kind, body_at = 1, parts = kind.parts }
    end
    local body = #bytes - 1 - count - (opened and 0 or LAYOUT.tag_bytes)
    if count < 1 or count > 8 or body < kind.least or body > kind.most then return nil end
    local reader = reader_of(bytes, 8)
    local sequence = decimal(limbs(reader, count * 8))
    return { kind = kind, sequence = sequence, body_at = 1 + count, sequence_bytes = count, parts = kind.parts }
end

local function netcode_parts(bytes, packet)
    local reader, nodes = reader_of(bytes, packet.body_at * 8), {}
    pcall(parts, reader, packet.parts, "tickwire.netcode", nodes)
    return nodes
end

-- ---------------------------------------------------------------- Wireshark

if not Proto then
    return { connection_packet = connection_packet, reliable = reliable, netcode = netcode, netcode_parts = netcode_parts }
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
function tickwire.init() pending, complete = {}, {} end

local function reassembled(pinfo, found, data)
    local number = pinfo.number
    if pinfo.visited then return complete[number] end
    local key = table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port, found.sequence }, " ")
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

local function dissect_payload(tvb, pinfo, tree, at)
    local bytes = tvb:raw(at)
    local found = reliable(bytes)
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
        if packet.kind.name == "payload" then dissect_payload(tvb, pinfo, item, packet.body_at) end
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
