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

-- Reads `bytes` from bit `at` (0 by default), the least significant bit of each byte first.
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

-- A number of at least 1 on the relative of serialize's relative integers.
function Reader:relative()
    for _, tier in ipairs(LAYOUT.relative) do
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

