-- What a script can reach, and how it is run. The chunk is given the functions of the server
-- (`native`) and the other chunks (`parts`) and returns functions that compile and run scripts.
--
-- Lua 5.1 knows no read-only tables. A protected table is an empty one that looks everything up in
-- another (`contents`); functions that look past metatables are replaced by ones that know of this.

local native, parts = ...

local READ_ONLY = "Attempt to modify a readonly table"
local KILLED = "Script killed by user with SCRIPT KILL..."
local TIMEOUT = "FUNCTION LOAD timeout"
local NO_MEMORY = "not enough memory"
local OWN = "=penstock:"

local byte, concat, find, sub = string.byte, table.concat, string.find, string.sub
local getinfo, resume, sethook = debug.getinfo, coroutine.resume, debug.sethook
local error, next, rawget, rawset, select, tostring = error, next, rawget, rawset, select, tostring
local type, unpack, xpcall, rawpcall = type, unpack, xpcall, pcall
local getmetatable, setmetatable = getmetatable, setmetatable
local collectgarbage, loadstring, setfenv = collectgarbage, loadstring, setfenv

-- Memory ------------------------------------------------------------------------------------------

-- So many values are passed to the server at once; the stack of a function in C holds 8000.
local MOST_VALUES = 7000
local PART = 1000

-- The server gets a copy of each text, and one that Lua has once may be given a thousand times: all
-- copies together must fit into the limit (in KB).
local function check_copies(values, count)
  local bytes = 0
  for place = 1, count do
    if type(values[place]) == "string" then
      bytes = bytes + #values[place]
    end
  end
  if bytes / 1024 > native.state.limit then
    error(NO_MEMORY, 0)
  end
end

-- What calls into the server must not run out of memory on the way, where no error can be raised:
-- it is checked before. Some room above the limit is kept for that.
local STEP, ROUNDS = 256, 2
local steps

-- Whether more is kept than may be. Garbage is looked for in steps, between which others have their
-- turn; what a round has found that was under way may be old, so there is another one.
local function keeps_too_much()
  local rounds = 0
  while collectgarbage("count") > native.state.limit do
    if rounds == ROUNDS then
      return true
    elseif collectgarbage("step", STEP) then
      rounds = rounds + 1
    end
    steps = native.tick(true)
    if steps == 0 then
      return false
    end
  end
  return false
end

local function guarded(call)
  local function checked(...)
    local count = select("#", ...)
    if count > MOST_VALUES then
      return native.pass(checked, { ... }, count)
    end
    local used = collectgarbage("count")
    if used * count > native.state.limit then -- No text is larger than all memory.
      check_copies({ ... }, count)
    end
    if used > native.state.limit and keeps_too_much() then
      error(NO_MEMORY, 0)
    end
    return call(...)
  end
  return checked
end

-- Calls one of these functions with so many values. Where they are nearly as many as the stack holds
-- there is no room for what is put beside them, so the server is given them in parts before.
function native.pass(call, values, count)
  if count <= MOST_VALUES then
    return call(unpack(values, 1, count))
  end
  check_copies(values, count)
  for first = 1, count, PART do
    local last = first + PART - 1
    native.gather(unpack(values, first, last < count and last or count))
  end
  return call()
end

for name in ("call may_call log sha1 number bit struct register"):gmatch("%S+") do
  native[name] = native[name] and guarded(native[name])
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
  if target ~= nil and contents[target] then
    error(READ_ONLY, 0)
  end
end

-- Errors as values --------------------------------------------------------------------------------

-- What ends a script must not be caught by it; this is the reason.
local killed

local function go_on(...)
  if killed then
    error(killed, 0)
  end
  return ...
end

-- What pcall yields of an error table of redis.call is its text.
local function caught(ok, first, ...)
  if killed then
    error(killed, 0)
  end
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

local guards = parts.guards(fail)
local create, misuse_resume = guards.call(coroutine.create), guards.call(coroutine.resume)
local globals = pick(_G, [[_VERSION assert error gcinfo ipairs rawequal select tonumber tostring
  type]])
globals.unpack = guards.unpack
local environment = protect(globals)
globals._G = environment
metatables[environment] = protect({})
metatables[""] = protect({ __index = true })

local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

setmetatable(globals, { __index = missing })

function globals.pcall(...)
  return caught(rawpcall(...))
end

-- A handler runs before anything can stop it again, so it is not called when the script is ended.
function globals.xpcall(...)
  local body, handler = ...
  if type(handler) ~= "function" then
    return go_on(xpcall(...))
  end
  return go_on(xpcall(body, function(...)
    if killed then
      return ...
    end
    return handler(...)
  end))
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
  return contents[target] and globals.next or next, target, nil
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

-- Compiling ---------------------------------------------------------------------------------------

-- More than the program, its bytecode, and the server's copy of that take for a byte of the source.
local PER_BYTE = 32

local function compile_uncollected(text, name)
  local chunk, message = loadstring(text, name)
  if not chunk then
    return nil, message
  end
  local code, line = native.rewrite(string.dump(chunk))
  if not code then
    return nil, getinfo(chunk, "S").short_src .. ":" .. line .. ": function or expression too complex"
  end
  return setfenv(loadstring(code), environment)
end

local function compiled(ok, ...)
  collectgarbage("restart")
  if not ok then
    return nil, (...)
  end
  return ...
end

-- The function of a source, or nil and what is wrong with it. Bytecode could do what no source can,
-- so its first byte is made one that is an error. The collector waits: the parser of Lua 5.1 holds
-- objects that only it knows of (CVE-2025-49844).
local function compile(text, name)
  if collectgarbage("count") + PER_BYTE * #text / 1024 > native.state.limit then
    collectgarbage("collect")
    if collectgarbage("count") + PER_BYTE * #text / 1024 > native.state.limit then
      return nil, "not enough memory"
    end
  end
  if byte(text) == 27 then
    text = " " .. text
  end
  collectgarbage("stop")
  return compiled(rawpcall(compile_uncollected, text, name))
end

function globals.loadstring(...)
  local text, name = ...
  if type(text) == "number" then
    text = tostring(text)
  elseif type(text) ~= "string" then
    local kind = select("#", ...) == 0 and "no value" or type(text)
    fail("bad argument #1 to 'loadstring' (string expected, got " .. kind .. ")")
  end
  return compile(text, name or text)
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

-- Libraries of Lua --------------------------------------------------------------------------------

local strings = pick(string, "byte char dump format len lower reverse sub upper")
for name, guarded_function in pairs(guards.string) do
  strings[name] = guarded_function
end
globals.string = protect(strings)
getmetatable("").__index = strings
globals.math = protect(pick(math, [[abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp
  huge ldexp log log10 max min mod modf pi pow rad random randomseed sin sinh sqrt tan tanh]]))
globals.os = protect({ clock = os.clock })

local tables = pick(table, "concat foreach foreachi getn insert maxn remove setn sort")
function tables.insert(...)
  check_writable((...))
  return guards.table.insert(...)
end
globals.table = protect(tables)

-- Coroutines: the hook that gives way to other clients belongs to each of them --------------------

-- What a script takes in addition, in KB, until it has to let others have their turn soon.
local MUCH = 16 * 1024
local before_it

local function stop(reason)
  killed = reason
  error(reason, 0)
end

local function tick()
  local before, used = steps, collectgarbage("count")
  steps = native.tick(used - before_it > MUCH)
  local full = used > native.state.limit and steps > 0 and keeps_too_much()
  if steps == 0 then
    stop(native.state.loading and TIMEOUT or KILLED)
  elseif full then
    stop(NO_MEMORY)
  elseif steps ~= before then
    sethook(tick, "", steps)
  end
end
guards.after_long = tick

local coroutines = pick(coroutine, "running status yield")

function coroutines.create(...)
  local thread = create(...)
  sethook(thread, tick, "", steps)
  return thread
end

function coroutines.resume(...)
  if type((...)) == "thread" then
    return go_on(resume(...))
  end
  return misuse_resume(...)
end

local function passed_on(ok, ...)
  if killed then
    error(killed, 0)
  elseif ok then
    return ...
  end
  local problem = ...
  if type(problem) == "string" then
    fail(problem)
  end
  error(problem, 0)
end

function coroutines.wrap(...)
  local thread = coroutines.create(...)
  return function(...)
    return passed_on(resume(thread, ...))
  end
end
globals.coroutine = protect(coroutines)

-- Libraries ---------------------------------------------------------------------------------------

local replies = parts.replies(native, tick)
for name, inside in pairs(parts.libraries(native, fail)) do
  globals[name] = protect(inside)
end
globals.cjson = protect(parts.cjson(native, fail))
globals.cmsgpack = protect(parts.cmsgpack(native, fail))
local redis = parts.redis(native, replies)
globals.redis = protect(redis)

-- Running -----------------------------------------------------------------------------------------

local function compile_script(text)
  return compile(text, "@user_script")
end

local function finish(ok, value, sha)
  if ok then
    return value
  end
  if type(value) ~= "table" then -- there was no memory left to say more
    value = { text = "ERR " .. tostring(value), place = "" }
  end
  return "-" .. value.text .. " script: " .. sha .. value.place .. ".", value.counted or false
end

-- Begins to count the steps of what runs next.
local function begin()
  killed, steps, before_it = nil, native.first_steps, collectgarbage("count")
  sethook(tick, "", steps)
end

-- Runs a function; its result in RESP, and behind an error whether that has been counted. The line
-- of an error lacks its end. Others have their turn while a long result is written, too.
local function execute(body, name, resp3)
  native.state.resp3 = false
  begin()
  local ok, value = xpcall(body, explain)
  if ok then
    local result = value
    ok, value = xpcall(function()
      return replies.encode(result, resp3, native.state.resp3)
    end, explain)
  end
  sethook()
  return finish(ok, value, name)
end

local function run(script, sha, resp3, keys, arguments)
  rawset(globals, "KEYS", keys)
  rawset(globals, "ARGV", arguments)
  local reply, counted = execute(script, sha, resp3)
  rawset(globals, "KEYS", nil)
  rawset(globals, "ARGV", nil)
  return reply, counted
end

-- Keys and arguments that come in a row.
local function split(count, ...)
  if count == 0 then
    return {}, { ... }
  end
  local keys, arguments, all = {}, {}, { ... }
  for place = 1, count do
    keys[place] = all[place]
  end
  for place = count + 1, #all do
    arguments[place - count] = all[place]
  end
  return keys, arguments
end

local function run_few(script, sha, resp3, ...)
  return run(script, sha, resp3, split(...))
end

if not native.register then
  return compile_script, run, run_few
end

-- Libraries of functions --------------------------------------------------------------------------

redis.breakpoint, redis.debug, redis.replicate_commands = nil, nil, nil

local while_loading = parts.functions(native, redis, protect, missing)

-- Lets a library register its functions. Returns what is wrong with its source, or what went wrong.
local function load_library(text)
  local chunk, message = compile(text, "@user_function")
  if not chunk then
    return message, nil
  end
  local lookup = getmetatable(environment)
  lookup.__index, native.state.loading = while_loading, true
  begin()
  local ok, problem = xpcall(chunk, explain)
  sethook()
  lookup.__index, native.state.loading = globals, false
  if ok then
    return nil, nil
  end
  return nil, type(problem) == "table" and problem.text or "ERR " .. tostring(problem)
end

local function call_function(callback, name, resp3, keys, arguments)
  return execute(function()
    return callback(keys, arguments)
  end, name, resp3)
end

local function call_function_few(callback, name, resp3, ...)
  return call_function(callback, name, resp3, split(...))
end

return load_library, call_function, call_function_few
