-- What a library of functions finds while it is loaded: `redis` with what it takes to register its
-- functions, and nothing else.
--
-- `missing` looks up what is not there: it raises an error.

local native, redis, protect, missing = ...

local concat, error, next, select, type = table.concat, error, next, select, type
local rawget, setmetatable, tostring = rawget, setmetatable, tostring

local FLAGS = {
  ["no-writes"] = true, ["allow-oom"] = true, ["allow-stale"] = true, ["no-cluster"] = true,
  ["allow-cross-slot-keys"] = true,
}

local function raise(text)
  error({ err = "ERR " .. text }, 0)
end

local function is_text(value)
  return type(value) == "string" or type(value) == "number"
end

local function flags_of(list)
  local flags = {}
  local flag = rawget(list, 1)
  while flag ~= nil do
    if not FLAGS[flag] then
      raise("unknown flag given")
    end
    flags[#flags + 1] = flag
    flag = rawget(list, #flags + 1)
  end
  return concat(flags, " ")
end

-- What each named argument must be, and what it is otherwise told.
local KINDS = {
  function_name = { is_text, "function_name argument given to redis.register_function must be a string" },
  description = { is_text, "description argument given to redis.register_function must be a string" },
  callback = {
    function(value)
      return type(value) == "function"
    end,
    "callback argument given to redis.register_function must be a function",
  },
  flags = {
    function(value)
      return type(value) == "table"
    end,
    "flags argument to redis.register_function must be a table representing function flags",
  },
}

local function check_named(arguments)
  for name, value in next, arguments do
    local kind = KINDS[name]
    if not kind then
      raise("unknown argument given to redis.register_function")
    elseif not kind[1](value) then
      raise(kind[2])
    end
  end
  if rawget(arguments, "function_name") == nil then
    raise("redis.register_function must get a function name argument")
  elseif rawget(arguments, "callback") == nil then
    raise("redis.register_function must get a callback argument")
  end
end

local function named(arguments)
  if type(arguments) ~= "table" then
    raise("calling redis.register_function with a single argument is only applicable to Lua table"
      .. " (representing named arguments).")
  end
  check_named(arguments)
  local description, flags = rawget(arguments, "description"), rawget(arguments, "flags")
  return rawget(arguments, "function_name"), rawget(arguments, "callback"),
    description and tostring(description) or false, flags and flags_of(flags) or ""
end

local function positional(name, callback)
  if not is_text(name) then
    raise("first argument to redis.register_function must be a string")
  elseif type(callback) ~= "function" then
    raise("second argument to redis.register_function must be a function")
  end
  return name, callback, false, ""
end

local function register(name, ...)
  local problem = native.register(tostring(name), ...)
  if problem then
    error({ err = problem }, 0)
  end
end

local given = {
  log = redis.log,
  register_function = function(...)
    local count = select("#", ...)
    if not native.state.loading then
      raise("redis.register_function can only be called on FUNCTION LOAD command")
    elseif count < 1 or count > 2 then
      raise("wrong number of arguments to redis.register_function")
    elseif count == 1 then
      register(named(...))
    else
      register(positional(...))
    end
  end,
}
for name in ("LOG_DEBUG LOG_VERBOSE LOG_NOTICE LOG_WARNING REDIS_VERSION REDIS_VERSION_NUM"):gmatch("%S+") do
  given[name] = redis[name]
end

return setmetatable({ redis = protect(setmetatable(given, { __index = missing })) }, { __index = missing })
