--- Finds and loads the C libraries.
local ffi = require "ffi"

local library = {}

--- Returns the value of an environment variable, or nil if it is missing or empty.
function library.environment(name)
    local value = os.getenv(name)
    return value ~= "" and value or nil
end

--- Loads the library of that name ("libtollbar"): `path` if given, else the one of the checkout
--- that this file is in, if `make` built it, else the installed one.
function library.load(name, path)
    if path then
        return ffi.load(path)
    end
    local here = debug.getinfo(1, "S").source:match("^@(.*)bindings/lua/tollbar/library%.lua$")
    if here then
        local built = (here == "" and "./" or here) .. "build/" .. name .. ".so"
        local file = io.open(built, "rb")
        if file then
            file:close()
            return ffi.load(built)
        end
    end
    return ffi.load(name .. ".so.1")
end

return library
