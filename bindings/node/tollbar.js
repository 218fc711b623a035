// Limits by key for Node, in memory that processes share.
'use strict';

const koffi = require('koffi');

const library = koffi.load(process.env.TOLLBAR_LIBRARY || 'libtollbar.so.1');
// Structs of include/tollbar.h are buffers here, which C fills in. Each begins with its size in bytes.
const SPEC_BYTES = 288;
const DECISION_BYTES = 40;
const OPTIONS_BYTES = 56;
const ERROR_BYTES = 24;
koffi.struct('tollbar_http_limit', {
    name: 'const void *', name_length: 'size_t', policy: 'const void *', decision: 'const void *',
    more_after_ns: 'uint64_t', partition: 'const void *', partition_length: 'size_t',
});
const KEY = 'void *table, uint32_t policy, const void *key, size_t length';
const c = {
    strerror: library.func('const char *tollbar_strerror(int32_t code)'),
    parse: library.func('int32_t tollbar_policy_spec_parse(const void *text, size_t length, void *out, void *error)'),
    open: library.func('int32_t tollbar_table_open(const char *path, void **policies, size_t count, void *options, _Out_ void **out)'),
    make: library.func('int32_t tollbar_table_new(void **policies, size_t count, void *options, _Out_ void **out)'),
    policy: library.func('int32_t tollbar_table_get_policy(void *table, uint32_t policy, void *out)'),
    check: library.func(`int32_t tollbar_table_check(${KEY}, uint64_t cost, void *out)`),
    peek: library.func(`int32_t tollbar_table_peek(${KEY}, uint64_t cost, void *out)`),
    charge: library.func(`int32_t tollbar_table_charge(${KEY}, uint64_t cost, _Out_ uint64_t *rest)`),
    reset: library.func(`int32_t tollbar_table_reset(${KEY})`),
    more: library.func(`int32_t tollbar_table_more_after(${KEY}, uint64_t cost, void *decision, _Out_ uint64_t *more)`),
    fields: library.func('int32_t tollbar_http_fields(tollbar_http_limit *limits, size_t count, uint32_t fields, uint64_t utc, void *buffer, size_t capacity, _Out_ size_t *length)'),
    close: library.func('void tollbar_table_close(void *table)'),
};

/** The call failed: the library's message, and its number (TOLLBAR_E_*) as `code`. */
class TollbarError extends Error {
    constructor(message, code = 0) {
        super(message);
        this.name = 'TollbarError';
        this.code = code;
    }
}

/**
 * Limits by key. Every process of the machine that opens the file decides by the same states: other Node processes, such as those of a
 * cluster, and programs in other languages. Methods take nanoseconds and never wait. They throw a TollbarError for a wrong argument and
 * for a closed table.
 *
 *     const logins = Table.open('/run/app/logins', '5/min burst 3', 100_000);
 *     if (!logins.allow(request.socket.remoteAddress)) response.writeHead(429).end();
 *
 * Keys are strings or buffers. A policy is its number in the list of policies, from 0.
 */
class Table {
    #handle;

    constructor(handle) {
        this.#handle = handle;
    }

    /**
     * Opens the table in a file, or makes the file. /run and /dev/shm last until the machine stops. Use a directory of the service's own:
     * the library refuses a file that another user made or may replace. `policies` is a text such as '5/min burst 3', or an array of texts.
     * `capacity` is the number of keys that can have a debt at one time; 20 bytes each.
     */
    static open(path, policies, capacity) {
        return make(policies, capacity, (specs, options, out) => c.open(path, specs, specs.length, options, out));
    }

    /** A table in this process's own memory. */
    static private(policies, capacity) {
        return make(policies, capacity, (specs, options, out) => c.make(specs, specs.length, options, out));
    }

    /** Takes permits of a key. Returns whether the request may pass. */
    allow(key, cost = 1, policy = 0) {
        const bytes = bytesOf(key);
        return checked(c.check(this.#open(), policy, bytes, bytes.length, costOf(cost), null)) === 0;
    }

    /** Takes permits of a key. Returns {allowed, remaining, retryAfter, resetAfter}; times are seconds, and Infinity means never. */
    check(key, cost = 1, policy = 0) {
        return this.#decide(c.check, key, cost, policy);
    }

    /** Says what check would say, and takes nothing. */
    peek(key, cost = 1, policy = 0) {
        return this.#decide(c.peek, key, cost, policy);
    }

    /** Charges a key without asking, for what failed or was sent. Returns the permits that could not be charged. */
    charge(key, cost = 1, policy = 0) {
        const bytes = bytesOf(key), rest = [0];
        checked(c.charge(this.#open(), policy, bytes, bytes.length, costOf(cost), rest));
        return Number(rest[0]);
    }

    /** Lets a key begin again. Returns false and changes nothing if no slot is left, as after a dozen resets within the time of one debt. */
    reset(key, policy = 0) {
        const bytes = bytesOf(key);
        return checked(c.reset(this.#open(), policy, bytes, bytes.length)) === 1;
    }

    /** The header fields that tell a client about a decision: Retry-After of a refusal, RateLimit-Policy and RateLimit. */
    fields(name, key, decision, cost = 1, policy = 0) {
        const bytes = bytesOf(key), title = bytesOf(name), raw = decision[RAW];
        const spec = sized(SPEC_BYTES), more = [0], length = [0], buffer = Buffer.alloc(1024);
        checked(c.policy(this.#open(), policy, spec));
        checked(c.more(this.#open(), policy, bytes, bytes.length, costOf(cost), raw, more));
        const limit = {
            name: title, name_length: title.length, policy: spec, decision: raw,
            more_after_ns: more[0], partition: null, partition_length: 0,
        };
        const RETRY_AFTER = 1, DRAFT_11 = 32;
        checked(c.fields(limit, 1, RETRY_AFTER | DRAFT_11, 0, buffer, buffer.length, length));
        const lines = buffer.toString('latin1', 0, Number(length[0])).split('\r\n').filter((line) => line !== '');
        return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]));
    }

    /** Unmaps the table. A file stays as it is. Later calls throw. */
    close() {
        if (this.#handle !== null) c.close(this.#handle);
        this.#handle = null;
    }

    #open() {
        if (this.#handle === null) throw new TollbarError('the table is closed');
        return this.#handle;
    }

    #decide(call, key, cost, policy) {
        const bytes = bytesOf(key), raw = sized(DECISION_BYTES);
        checked(call(this.#open(), policy, bytes, bytes.length, costOf(cost), raw));
        return {
            allowed: raw.readUInt32LE(4) === 0,
            remaining: Number(raw.readBigUInt64LE(8)),
            retryAfter: seconds(raw.readBigUInt64LE(16)),
            resetAfter: seconds(raw.readBigUInt64LE(24)),
            [RAW]: raw,
        };
    }
}

/** The key of a decision's C struct, which `fields` needs. */
const RAW = Symbol('tollbar_decision');

/** The library's UINT64_MAX, as a time: never. */
const NEVER = 0xffffffffffffffffn;

function make(policies, capacity, call) {
    const texts = Array.isArray(policies) ? policies : [policies];
    if (texts.length === 0) throw new TollbarError('no policy; expected a policy such as "5/min", or several');
    if (!Number.isSafeInteger(capacity) || capacity < 1) throw new TollbarError(`capacity ${capacity}; expected the number of keys, 1 or more`);
    const options = sized(OPTIONS_BYTES), out = [null];
    options.writeBigUInt64LE(BigInt(capacity), 8);
    checked(call(texts.map(parse), options, out));
    return new Table(out[0]);
}

function parse(text) {
    const spec = sized(SPEC_BYTES), error = sized(ERROR_BYTES), bytes = bytesOf(text);
    const code = c.parse(bytes, bytes.length, spec, error);
    if (code < 0) {
        const expected = koffi.decode(error, 16, 'const char *') ?? c.strerror(code);
        throw new TollbarError(`policy "${text}", column ${error.readBigUInt64LE(8)}: expected ${expected}`, code);
    }
    return spec;
}

function checked(result) {
    if (result < 0) throw new TollbarError(c.strerror(result), result);
    return result;
}

/** A struct's bytes: zeroes, after its size. */
function sized(bytes) {
    const struct = Buffer.alloc(bytes);
    struct.writeUInt32LE(bytes, 0);
    return struct;
}

function bytesOf(text) {
    if (typeof text === 'string') return Buffer.from(text);
    if (text instanceof Uint8Array) return text;
    throw new TollbarError(`${typeof text} as a key; expected a string or bytes`);
}

function costOf(cost) {
    if (Number.isSafeInteger(cost) && cost >= 0) return cost;
    throw new TollbarError(`cost ${cost}; expected a whole number, 0 or more`);
}

function seconds(ns) {
    return ns === NEVER ? Infinity : Number(ns) / 1e9;
}

module.exports = { Table, TollbarError };
