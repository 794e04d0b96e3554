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
function KINDS.union(reader, kind, path)
    local of = kind.variants[reader:bits(kind.bits) + 1] or refuse("there is no such message")
    local _, kids = KINDS[of.type.kind](reader, of.type, path .. "." .. of.filter)
    return of.name, kids
end
function KINDS.message(reader, kind, path)
    local kids = {}
    for i, of in ipairs(kind.fields) do kids[i] = field(reader, of.type, of.name, path .. "." .. of.filter) end
    return "", kids
end

