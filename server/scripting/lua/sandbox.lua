-- What a script can reach, and how it is run. The chunk is given the functions of the server
-- (`native`) and the other chunks (`parts`) and returns `compile` and `run`.
--
-- Lua 5.1 knows no read-only tables. A protected table is an empty one that looks everything up in
-- another (`contents`); functions that look past metatables are replaced by ones that know of this.

local native, parts, STEPS = ...

local READ_ONLY = "Attempt to modify a readonly table"
local KILLED = "Script killed by user with SCRIPT KILL..."
local OWN = "=penstock:"

local byte, concat, find, sub = string.byte, table.concat, string.find, string.sub
local create, getinfo, resume, sethook = coroutine.create, debug.getinfo, coroutine.resume, debug.sethook
local error, next, rawget, rawset, select, tostring = error, next, rawget, rawset, select, tostring
local type, unpack, xpcall, rawpcall = type, unpack, xpcall, pcall
local getmetatable, setmetatable = getmetatable, setmetatable
local collectgarbage, load_text, loadstring, setfenv = collectgarbage, loadstring, loadstring, setfenv

-- Memory ------------------------------------------------------------------------------------------

-- What calls into the server must not run out of memory on the way, where no error can be raised:
-- it is checked before. Some room above the limit (in KB) is kept for that.
local function guarded(call)
  return function(...)
    if collectgarbage("count") > native.state.limit then
      collectgarbage("collect")
      if collectgarbage("count") > native.state.limit then
        error("not enough memory", 0)
      end
    end
    return call(...)
  end
end

for name in ("call may_call log sha1 number bit struct tick"):gmatch("%S+") do
  native[name] = guarded(native[name])
end

-- Where a script is -------------------------------------------------------------------------------

-- The innermost frame of the stack that belongs to a script.
local function frame()
  local level = 2
  while true do
    local info = getinfo(level, "Sl")
    if not info then
      return nil
    end
    if info.currentline > 0 and sub(info.source, 1, #OWN) ~= OWN then
      return info
    end
    level = level + 1
  end
end

-- Raises an error of a library function as those written in C do: behind the caller's position.
local function fail(message)
  local info = frame()
  local where = info and info.short_src .. ":" .. info.currentline .. ": " or ""
  error(where .. message, 0)
end

-- Protected tables --------------------------------------------------------------------------------

local contents = setmetatable({}, { __mode = "k" })
local metatables = {}

local function refuse()
  error(READ_ONLY, 2)
end

local function protect(inside)
  local outside = setmetatable({}, { __index = inside, __newindex = refuse })
  contents[outside] = inside
  return outside
end

local function pick(library, names)
  local picked = {}
  for name in names:gmatch("%S+") do
    picked[name] = library[name]
  end
  return picked
end

local function check_table(name, ...)
  local kind = select("#", ...) == 0 and "no value" or type((...))
  if kind ~= "table" then
    fail("bad argument #1 to '" .. name .. "' (table expected, got " .. kind .. ")")
  end
end

local function check_writable(target)
  if contents[target] then
    error(READ_ONLY, 0)
  end
end

-- Errors as values --------------------------------------------------------------------------------

-- What pcall yields of an error table of redis.call is its text.
local function caught(ok, first, ...)
  if not ok and type(first) == "table" and type(rawget(first, "err")) == "string" then
    return ok, first.err
  end
  return ok, first, ...
end

-- The error that ends a script, with the place where it happened; `counted` are those of commands,
-- which have gone into the statistics already.
local function explain(problem)
  sethook() -- a script that was ended must not be ended again where it is cleared away
  local info = frame()
  local place = info and ", on " .. info.source .. ":" .. info.currentline or ""
  if type(problem) ~= "table" then
    return { text = "ERR " .. tostring(problem), place = place }
  end
  local text = rawget(problem, "err")
  if type(text) ~= "string" then
    return { text = "ERR unknown error", place = place }
  end
  return { text = text, place = place, counted = rawget(problem, "ignore_error_stats_update") }
end

-- The global environment --------------------------------------------------------------------------

local globals = pick(_G, [[_VERSION assert error gcinfo ipairs rawequal select tonumber tostring
  type unpack xpcall]])
local environment = protect(globals)
globals._G = environment
metatables[environment] = protect({})
metatables[""] = protect({ __index = true })

setmetatable(globals, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})

function globals.pcall(...)
  return caught(rawpcall(...))
end

function globals.getmetatable(value)
  if type(value) == "string" then
    return metatables[""]
  end
  if contents[value] then
    return metatables[value]
  end
  return getmetatable(value)
end

function globals.setmetatable(...)
  check_table("setmetatable", ...)
  local target, metatable = ...
  check_writable(target)
  return setmetatable(target, metatable)
end

function globals.rawget(...)
  check_table("rawget", ...)
  local target, key = ...
  return rawget(contents[target] or target, key)
end

function globals.rawset(...)
  check_table("rawset", ...)
  local target, key, value = ...
  check_writable(target)
  return rawset(target, key, value)
end

function globals.next(...)
  check_table("next", ...)
  local target, key = ...
  return next(contents[target] or target, key)
end

function globals.pairs(...)
  check_table("pairs", ...)
  local target = ...
  return next, contents[target] or target, nil
end

-- A script may ask and clean up; it may not turn the collector off, for others need it.
local COLLECTING = {
  collect = true, count = true, step = true,
  restart = false, setpause = false, setstepmul = false, stop = false,
}
function globals.collectgarbage(option, argument)
  option = option or "collect"
  if COLLECTING[option] == nil then
    fail("bad argument #1 to 'collectgarbage' (invalid option '" .. tostring(option) .. "')")
  end
  return COLLECTING[option] and collectgarbage(option, argument) or 0
end

-- Only text is compiled: bytecode could do what no source can.
function globals.loadstring(...)
  local text, name = ...
  if type(text) == "number" then
    text = tostring(text)
  elseif type(text) ~= "string" then
    local kind = select("#", ...) == 0 and "no value" or type(text)
    fail("bad argument #1 to 'loadstring' (string expected, got " .. kind .. ")")
  end
  name = name or text
  if byte(text) == 27 then
    text = " " .. text
  end
  local chunk, message = load_text(text, name)
  if not chunk then
    return nil, message
  end
  return setfenv(chunk, environment)
end

function globals.load(...)
  local reader, name = ...
  if type(reader) ~= "function" then
    local kind = select("#", ...) == 0 and "no value" or type(reader)
    fail("bad argument #1 to 'load' (function expected, got " .. kind .. ")")
  end
  local pieces = {}
  while true do
    local piece = reader()
    if piece == nil or piece == "" then
      break
    end
    pieces[#pieces + 1] = piece
  end
  return globals.loadstring(concat(pieces), name or "=(load)")
end

local strings = pick(string, [[byte char dump find format gfind gmatch gsub len lower match rep
  reverse sub upper]])
globals.string = protect(strings)
globals.math = protect(pick(math, [[abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp
  huge ldexp log log10 max min mod modf pi pow rad random randomseed sin sinh sqrt tan tanh]]))
globals.os = protect({ clock = os.clock })

local tables = pick(table, "concat foreach foreachi getn insert maxn remove setn sort")
local insert = tables.insert
function tables.insert(target, ...)
  check_writable(target)
  return insert(target, ...)
end
globals.table = protect(tables)

-- Coroutines: the hook that gives way to other clients belongs to each of them --------------------

local function tick()
  if native.tick() then
    sethook(tick, "", 1) -- whatever catches this is stopped at its next step
    error(KILLED, 0)
  end
end

local coroutines = pick(coroutine, "resume running status yield")

function coroutines.create(body)
  local thread = create(body)
  sethook(thread, tick, "", STEPS)
  return thread
end

local function passed_on(ok, ...)
  if ok then
    return ...
  end
  local problem = ...
  if type(problem) == "string" then
    fail(problem)
  end
  error(problem, 0)
end

function coroutines.wrap(body)
  local thread = coroutines.create(body)
  return function(...)
    return passed_on(resume(thread, ...))
  end
end
globals.coroutine = protect(coroutines)

-- Libraries ---------------------------------------------------------------------------------------

local replies = parts.replies(native)
for name, inside in pairs(parts.libraries(native, fail)) do
  globals[name] = protect(inside)
end
globals.cjson = protect(parts.cjson(fail))
globals.cmsgpack = protect(parts.cmsgpack(native, fail))
globals.redis = protect(parts.redis(native, replies))

-- Compiling and running ---------------------------------------------------------------------------

-- The function of a script, or nil and what is wrong with it. `rewrite` works on its bytecode.
local function compile(text, rewrite)
  local chunk, message = load_text(text, "@user_script")
  if not chunk then
    return nil, message
  end
  return setfenv(loadstring(rewrite(string.dump(chunk))), environment)
end

local function finish(ok, value, sha, resp3)
  if ok then
    return replies.encode(value, resp3, native.state.resp3)
  end
  if type(value) ~= "table" then -- there was no memory left to say more
    value = { text = "ERR " .. tostring(value), place = "" }
  end
  return "-" .. value.text .. " script: " .. sha .. value.place .. ".", value.counted or false
end

-- Runs a script; its reply in RESP, and behind an error whether that has been counted. The line
-- of an error lacks its end.
local function run(script, sha, resp3, keys, arguments)
  rawset(globals, "KEYS", keys)
  rawset(globals, "ARGV", arguments)
  native.state.resp3 = false
  sethook(tick, "", STEPS)
  local ok, value = xpcall(script, explain)
  sethook()
  rawset(globals, "KEYS", nil)
  rawset(globals, "ARGV", nil)
  return finish(ok, value, sha, resp3)
end

-- The same with keys and arguments in a row.
local function run_few(script, sha, resp3, count, ...)
  if count == 0 then
    return run(script, sha, resp3, {}, { ... })
  end
  local keys, arguments, all = {}, {}, { ... }
  for place = 1, count do
    keys[place] = all[place]
  end
  for place = count + 1, #all do
    arguments[place - count] = all[place]
  end
  return run(script, sha, resp3, keys, arguments)
end

return compile, run, run_few
