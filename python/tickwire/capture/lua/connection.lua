-- ---------------------------------------------------------------- the connection packet

-- Parts that the layout describes by tables: consecutive numbers.
local function parts(reader, described, path, into)
    local known = {}
    for _, part in ipairs(described) do
        local from, value = reader.at, nil
        if part.optional and not reader:flag() then
            value = nil
        elseif part.type == "bits" then
            value = reader:bits(part.bits)
        elseif part.type == "hex" then
            local low = reader:bits(32)
            value = string.format("0x%08x%08x", reader:bits(part.bits - 32), low)
        elseif part.type == "u64" then
            value = decimal(limbs(reader, 64))
        elseif part.type == "relative" then
            value = reader:relative()
        elseif part.type == "channel" then
            local bits = name_bits(#PROTOCOL.channels)
            value = bits > 0 and reader:bits(bits) or 0
            if value >= #PROTOCOL.channels then refuse("there is no such channel") end
        elseif part.type == "octets" then
            value = hex(reader:octets(part.count or known[part.length]))
        elseif part.type == "string" then
            value = reader:text(reader:length(part.most))
            if value == "" and part.optional then refuse(part.name .. " is empty") end
        end
        if value and part.type == "bits" and (value > (part.most or value) or value < (part.least or value)) then
            refuse(part.name .. " is out of its bounds")
        end
        known[part.name] = value
        local shown = part.names and part.names[value] and (part.names[value] .. " (" .. value .. ")") or value
        if part.unit and value then shown = value * part.unit end
        if shown ~= nil then
            into[#into + 1] = { name = part.name, field = path .. "." .. part.name, value = shown, from = from, to = reader.at }
        end
    end
    return known
end

local function declared_body(reader, class, into)
    for _, of in ipairs(class.fields) do
        into[#into + 1] = field(reader, of.type, of.name, "tickwire." .. class.filter .. "." .. of.filter)
    end
end

local function message(reader, channel, prefix, told)
    local from, config = reader.at, PROTOCOL.channels[channel + 1]
    local node = { kids = prefix, from = prefix[1] and prefix[1].from or from }
    if config.kind == "payload" then
        local bits = reader:length(8 * config.max_bytes)
        local start = reader.at
        if reader.at + bits > reader.last then refuse("ends too early") end
        local ghosts = PROTOCOL.ghosts and PROTOCOL.ghosts.channel == channel
        if not ghosts then reader.at = reader.at + bits end
        node.name = "payload"
        node.value = bits .. " bits"
        node.field = "tickwire.payload"
        node.kids[#node.kids + 1] = { name = "length", field = "tickwire.payload.bits", value = bits, from = from, to = start }
        if ghosts then ghost_payload(reader, start + bits, node.kids, told) end
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
            declared_body(reader, class, node.kids)
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
            if more.verdict == 0 or more.verdict == 6 then
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
                previous = previous and (previous + reader:relative()) % 65536 or reader:bits(16)
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

-- A fragment of a message that is cut. Its `part` is what is needed to put the message together.
local function message_fragment(reader, told)
    local node = { name = "fragment", field = "tickwire.fragment", kids = {}, from = reader.at }
    local channel = parts(reader, { { name = "channel", type = "channel" } }, "tickwire", node.kids).channel
    local config = PROTOCOL.channels[channel + 1]
    local from
    local function put(name, value, shown)
        node.kids[#node.kids + 1] = { name = name, field = "tickwire." .. name, value = shown or value, from = from, to = reader.at }
        from = reader.at
        return value
    end
    if not LAYOUT.with_credit[config.kind] then refuse("a fragment of a channel that has none") end
    from = reader.at
    local id = put("message_id", reader:bits(16))
    local bits = name_bits(#PROTOCOL.messages)
    local number = bits > 0 and reader:bits(bits) or 0
    local class = PROTOCOL.messages[number + 1] or refuse("there is no such message type")
    put("fragment.type", number, class.name)
    local body = put("fragment.bits", reader:bits(name_bits(8 * config.max_bytes + 1)))
    local size = math.ceil(body / 8)
    if size <= LAYOUT.fragment_bytes or size > math.min(config.max_bytes, class.opaque or size) then
        refuse("a fragment of a message of " .. body .. " bits")
    end
    local count = math.ceil(size / LAYOUT.fragment_bytes)
    local index = put("fragment.index", reader:length(count - 1))
    local data = reader:octets(math.min(LAYOUT.fragment_bytes, size - index * LAYOUT.fragment_bytes))
    put("fragment.data", data, hex(data))
    node.to = reader.at
    node.value = index + 1 .. " of " .. count .. " of " .. class.name .. " " .. id .. " on channel " .. channel
    node.part = { channel = channel, id = id, number = number, bits = body, count = count, index = index, data = data }
    told[#told + 1] = class.name .. " " .. index + 1 .. "/" .. count
    return node
end

-- The message that fragments make, by the number of its type.
local function message_of(number, bits, bytes)
    local class, reader = PROTOCOL.messages[number + 1], reader_of(bytes)
    local node = { name = class.name, value = "", field = "tickwire.message", kids = {}, from = 0, to = bits }
    local fine, problem = pcall(function()
        if class.opaque then
            node.kids[1] = { name = "body", field = "tickwire.opaque_bits", value = bits, from = 0, to = bits }
        else
            declared_body(reader, class, node.kids)
            if reader.at ~= bits then refuse("the body has another length") end
        end
    end)
    if not fine then
        local why = type(problem) == "table" and problem.refused or tostring(problem)
        node.kids[#node.kids + 1] = { name = "malformed", field = "tickwire.malformed", value = why,
                                      from = math.min(reader.at, reader.last), to = reader.last }
    end
    return { node }
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
            ids[i] = i == 1 and reader:bits(16) or (ids[i - 1] + reader:relative()) % 65536
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

-- Bits after the last entry are ignored, as in yojimbo.
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
            local at = ack and ack - 32
            if section.name == "entries" then
                local above = -1
                while reader:flag() do
                    nodes[#nodes + 1] = entry(reader, told, above)
                    above = nodes[#nodes].channel
                end
            elseif section.name == "fragments" then
                -- Without fragments, its flag is one of the bits that fill the last byte.
                if reader.at < reader.last and reader:flag() then
                    repeat
                        nodes[#nodes + 1] = message_fragment(reader, told)
                    until not reader:flag()
                else
                    reader.at = from
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
                        local newest = at - known.missing + 1
                        local oldest = newest - known.received + 1
                        if oldest < 0 then refuse("ack ranges walk too far") end
                        at = oldest - 1
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

