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
            if found.fragment > found.last then refuse("a fragment comes after the last") end
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

