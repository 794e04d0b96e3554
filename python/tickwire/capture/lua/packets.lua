-- ---------------------------------------------------------------- packet headers, and netcode's packets

-- A reader of a header, its nodes, and a function that adds one. All offsets are in bits, as above.
local function header_of(bytes, group)
    local reader, nodes = reader_of(bytes), {}
    return reader, nodes, function(name, value, from)
        nodes[#nodes + 1] = { name = name, field = "tickwire." .. group .. "." .. name, value = value, from = from, to = reader.at }
        return value
    end
end

-- The ack bits of either framing.
local function put_ack_bits(reader, put, prefix)
    local from, ack_bits = reader.at, 0
    for i, flag in ipairs(LAYOUT.reliable.ack_bytes) do
        local there = math.floor(prefix / flag) % 2 == 1
        ack_bits = ack_bits + (there and reader:bits(8) or 255) * 256 ^ (i - 1)
    end
    put("ack_bits", string.format("0x%08x", ack_bits), from)
end

-- Reads a header into `found`, and notes what is wrong with it.
local function read_header(reader, found, read)
    local fine, problem = pcall(read)
    if not fine then
        local nodes = found.nodes
        nodes[#nodes + 1] = { name = "malformed", field = "tickwire.malformed", value = problem.refused or tostring(problem),
                              from = reader.at, to = reader.last }
        return found
    end
    found.body_at = reader.at / 8
    return found
end

-- The header of our own framing, in a datagram of this number.
local function numbered(bytes, number)
    local reader, nodes, put = header_of(bytes, "packet")
    local found = { nodes = nodes, sequence = tonumber(number) }
    return read_header(reader, found, function()
        local prefix = put("prefix", reader:bits(8), 0)
        if prefix % 2 == 1 then
            found.fragment = put("fragment.id", reader:bits(8), 8)
            found.last = put("fragment.last", reader:bits(8), 16)
            if found.fragment > found.last then refuse("a fragment comes after the last") end
            found.sequence = found.sequence - found.fragment
            if found.fragment > 0 then
                if prefix ~= 1 then refuse("only the first fragment has a header") end
                return
            end
        end
        local from, ack = reader.at, 0
        for i = 0, math.floor(prefix / LAYOUT.packet.ack_length) % 4 do ack = ack + reader:bits(8) * 256 ^ i end
        found.ack = put("ack", ack, from)
        put_ack_bits(reader, put, prefix)
        from = reader.at
        if prefix >= LAYOUT.packet.skipped then put("skipped", reader:bits(8), from) end
    end)
end

-- The header of reliable 1.0, which yojimbo's framing has.
local function reliable(bytes)
    local reader, nodes, put = header_of(bytes, "reliable")
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
        put_ack_bits(reader, put, prefix)
        return sequence, ack
    end
    local found = { nodes = nodes }
    return read_header(reader, found, function()
        if #bytes > 0 and bytes:byte(1) % 2 == LAYOUT.reliable.fragment then
            reader:bits(8)
            put("fragment.prefix", LAYOUT.reliable.fragment, 0)
            found.sequence = put("fragment.sequence", reader:bits(16), 8)
            found.fragment = put("fragment.id", reader:bits(8), 24)
            found.last = put("fragment.last", reader:bits(8), 32)
            if found.fragment > found.last then refuse("a fragment comes after the last") end
            if found.fragment == 0 then
                local _, ack = header(found.sequence)
                found.ack = ack
            end
        else
            found.sequence, found.ack = header()
        end
    end)
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

