//! What a program does without leases: one GCRA script for each request, called through the `redis`
//! crate on one connection.

use super::server::Server;
use redis::{Connection, RedisResult, Script};

/// GCRA in the server's time in microseconds, with one key whose value is the TAT as a string.
const GCRA: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + ARGV[1]
if tat - now > tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[1], string.format('%.3f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
return 1
";

pub struct PerRequest {
    connection: Connection,
    script: Script,
}

impl PerRequest {
    pub fn new(server: &Server) -> RedisResult<PerRequest> {
        let connection =
            redis::Client::open(format!("redis+unix://{}", server.socket().display()))?
                .get_connection()?;
        Ok(PerRequest { connection, script: Script::new(GCRA) })
    }

    pub fn check(&mut self, key: &[u8]) -> RedisResult<bool> {
        // The limit of the other ways: 10 ns a permit, and a burst of 160 ms.
        self.script.key(key).arg(0.01).arg(160_000).invoke(&mut self.connection)
    }
}
