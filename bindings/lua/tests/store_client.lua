--- A redis-server on a socket in a directory of its own, and clients over that socket.
local ffi = require "ffi"

-- Under names of this module, because the module may declare some of them. The numbers are Linux's.
ffi.cdef [[
typedef struct { unsigned short family; char path[108]; } test_address;
int usleep(unsigned microseconds);
int test_socket(int domain, int type, int protocol) __asm__("socket");
int test_connect(int descriptor, const test_address *address, unsigned length) __asm__("connect");
long test_write(int descriptor, const char *bytes, size_t length) __asm__("write");
long test_read(int descriptor, char *bytes, size_t length) __asm__("read");
]]
local UNIX, STREAM = 1, 1

-- The server ends when this process closes the standard input of its shell, which then removes the
-- directory.
local directory = assert(io.popen("mktemp -d")):read("*l")
local socket = directory .. "/s"
local command = "exec 3<&0; redis-server --port 0 --unixsocket %s --dir %s --save '' --appendonly no --logfile log & "
    .. "read -r _ <&3; kill -9 $!; wait; rm -rf %s"
local server = assert(io.popen(command:format(socket, directory, directory), "w"))

local function connected()
    -- The handle is in use as long as this function is.
    assert(io.type(server) == "file")
    local descriptor = ffi.C.test_socket(UNIX, STREAM, 0)
    local address = ffi.new("test_address", UNIX, socket)
    for _ = 1, 6000 do
        if ffi.C.test_connect(descriptor, address, ffi.sizeof(address)) == 0 then
            return descriptor
        end
        ffi.C.usleep(5000)
    end
    error("no store; if there is no redis-server, as root: apt-get install redis-server")
end

local buffer = ffi.new("char[4096]")

--- A Redis client with a connection of its own. Within a coroutine it yields between a request and
--- its reply, as a client in nginx does.
return function()
    local descriptor = connected()
    local left = ""
    local function more()
        local length = tonumber(ffi.C.test_read(descriptor, buffer, 4096))
        assert(length > 0, "the server is gone")
        left = left .. ffi.string(buffer, length)
    end
    local function line()
        while not left:find("\r\n", 1, true) do
            more()
        end
        local first, rest = left:match("^(.-)\r\n(.*)$")
        left = rest
        return first
    end
    local function text(length)
        while #left < length + 2 do
            more()
        end
        local words = left:sub(1, length)
        left = left:sub(length + 3)
        return words
    end
    local function reply()
        local words = line()
        local kind, value = words:sub(1, 1), words:sub(2)
        if kind == "-" then
            return false, value
        elseif kind == "*" then
            local items = {}
            for i = 1, tonumber(value) do
                items[i] = reply()
            end
            return items
        elseif kind == "$" then
            return text(tonumber(value))
        end
        return tonumber(value) or value
    end
    return function(...)
        local words = { "*" .. select("#", ...) .. "\r\n" }
        for i = 1, select("#", ...) do
            local word = select(i, ...)
            words[i + 1] = "$" .. #word .. "\r\n" .. word .. "\r\n"
        end
        local request = table.concat(words)
        assert(tonumber(ffi.C.test_write(descriptor, request, #request)) == #request)
        if coroutine.running() then
            coroutine.yield()
        end
        return reply()
    end
end
