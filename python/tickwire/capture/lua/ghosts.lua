-- ---------------------------------------------------------------- ghosts: the payload of their channel

local TIERS = { 2, 5, 8, 12, 16, 24, 32, 48 }
local GAPS = { { 0, 0 }, { 3, 1 }, { 6, 9 }, { 10, 73 } }
local FAR_GAP = 1097

local function pass(reader, bits)
    if reader.at + bits > reader.last then refuse("ends too early") end
    reader.at = reader.at + bits
end

-- What a property takes against a baseline, which nobody knows here: only how much it is.
local function pass_delta(reader, delta)
    if delta.optional then
        if reader:flag() then pass_delta(reader, delta.optional) end
        return
    end
    for _, part in ipairs(delta.parts or {}) do pass_delta(reader, part) end
    for _, word in ipairs(delta.words or {}) do
        local tier = 1
        if word.stays then
            if not reader:flag() then pass(reader, word.rest) end
        else
            while tier <= word.tiers and not reader:flag() do tier = tier + 1 end
            pass(reader, tier <= word.tiers and TIERS[tier] or word.rest)
        end
    end
end

local function gap_of(reader)
    for _, tier in ipairs(GAPS) do
        if reader:flag() then return tier[2] + (tier[1] > 0 and reader:bits(tier[1]) or 0) end
    end
    local gap = reader:bits(16)
    return gap >= FAR_GAP and gap or refuse("a gap is not in its shortest form")
end

-- A baseline: whether there is an older state, and how to show it.
local function base_of(reader, before)
    if reader:flag() then return before or refuse("there is no baseline before") end
    if reader:flag() then
        local depth = reader:bits(2)
        if depth > 2 then refuse("there are at most two states before") end
        return { older = depth > 0, shown = "newest, and " .. depth .. " before" }
    end
    local age = reader:bits(6)
    local shown = age < 63 and age + 1 .. " ticks ago" or "tick " .. reader:bits(16)
    if not reader:flag() then return { older = false, shown = shown } end
    return { older = true, shown = shown .. ", and " .. reader:bits(6) + 1 .. " before that" }
end

local function ghost_record(reader, class, id, state)
    local node = { field = "tickwire.ghost", kids = {}, from = reader.at }
    local path = "tickwire." .. class.filter
    local function put(name, value, from)
        node.kids[#node.kids + 1] = { name = name, field = "tickwire.ghost." .. name, value = value, from = from, to = reader.at }
    end
    local function each(has, with_words, visit)
        for i, property in ipairs(class.properties) do
            if has(i, property) and (property.delta ~= nil) == with_words then visit(property) end
        end
    end
    local function whole(property)
        node.kids[#node.kids + 1] = field(reader, property.type, property.name, path .. "." .. property.filter)
    end
    local from = reader.at
    if reader:flag() then
        node.name = "update"
        state.base = base_of(reader, state.base)
        put("base", state.base.shown, from)
        from = reader.at
        if not reader:flag() then
            state.mask = {}
            for i in ipairs(class.properties) do state.mask[i] = reader:flag() end
        elseif not state.mask then
            refuse("there is no mask before")
        end
        local names, mask = {}, state.mask
        for i, property in ipairs(class.properties) do
            if mask[i] then names[#names + 1] = property.name end
        end
        put("mask", table.concat(names, ", "), from)
        from = reader.at
        if state.base.older then put("goes_on", reader:flag(), from) end
        local has = function(i) return mask[i] end
        each(has, true, function(property)
            local start = reader.at
            pass_delta(reader, property.delta)
            node.kids[#node.kids + 1] = { name = property.name, field = path .. "." .. property.filter .. ".delta",
                                          value = reader.at - start .. " bits", from = start, to = reader.at }
        end)
        each(has, false, whole)
    elseif reader:flag() then
        node.name = "create"
        local owner = reader:flag()
        put("owner", owner, from)
        local chosen = false
        if class.chosen then
            from = reader.at
            chosen = reader:flag()
            put("chosen", chosen, from)
        end
        local has = function(_, property)
            if property.condition == "o" then return owner end
            if property.condition == "c" then return chosen end
            return property.condition ~= "e" or not owner
        end
        each(has, true, whole)
        each(has, false, whole)
    else
        node.name = "destroy"
    end
    node.value, node.to = class.name .. " " .. id, reader.at
    return node
end

-- Up to `last`, in `kids`. What is coded is left as it is: its models are those of packets before.
local function visit_number(reader)
    local low = reader:bits(32)
    return ("%08x%08x"):format(reader:bits(32), low)
end

local function ghost_payload(reader, last, kids, told)
    local from, behind = reader.at, reader.last
    reader.last = last
    kids[#kids + 1] = { name = "tick", field = "tickwire.ghost.tick", value = reader:bits(16), from = from, to = reader.at }
    from = reader.at
    if reader:flag() then
        local value = visit_number(reader)
        reader:bits(16)
        if reader:flag() then
            value = value .. ", continues " .. visit_number(reader) .. " up to tick " .. reader:bits(32)
        end
        kids[#kids + 1] = { name = "visit", field = "tickwire.ghost.visit", value = value, from = from, to = reader.at }
    end
    local state, classes = {}, PROTOCOL.ghosts.classes
    while reader:flag() do
        local bits = name_bits(#classes)
        local class = classes[(bits > 0 and reader:bits(bits) or 0) + 1]
        if not class or class.coded then refuse("there is no such class of ghosts here") end
        local id = 0
        state.mask = nil
        while reader:flag() do
            id = id + gap_of(reader)
            if id >= class.capacity then refuse("an id is beyond the class's capacity") end
            local record = ghost_record(reader, class, id, state)
            kids[#kids + 1] = record
            id = id + 1
        end
        told[#told + 1] = class.name .. " ghosts"
    end
    if reader.at < last then
        if not PROTOCOL.ghosts.coded then refuse("more follows than the last section") end
        kids[#kids + 1] = { name = "coded", field = "tickwire.ghost.coded", value = last - reader.at .. " bits", from = reader.at,
                            to = last }
        reader.at = last
    end
    reader.last = behind
end

