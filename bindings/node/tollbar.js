// Limits by key for Node, in memory that processes share.
'use strict';

const koffi = require('koffi');

const library = koffi.load(process.env.TOLLBAR_LIBRARY || 'libtollbar.so.1');
// Structs of include/tollbar.h are buffers here, which C fills in. Each begins with its size in bytes.
const SPEC_BYTES = 512;
const DECISION_BYTES = 40;
const OPTIONS_BYTES = 56;
const ERROR_BYTES = 24;
const PREFIX_BYTES = 24;
const RESERVATION_BYTES = 24;
koffi.struct('tollbar_http_limit', {
    name: 'const void *', name_length: 'size_t', policy: 'const void *', decision: 'const void *',
    more_after_ns: 'uint64_t', partition: 'const void *', partition_length: 'size_t',
});
const KEY = 'void *table, uint32_t policy, const void *key, size_t length';
const c = {
    strerror: library.func('const char *tollbar_strerror(int32_t code)'),
    errname: library.func('const char *tollbar_errname(int32_t code)'),
    strreason: library.func('const char *tollbar_strreason(uint32_t reason)'),
    parse: library.func('int32_t tollbar_policy_spec_parse(const void *text, size_t length, void *out, void *error)'),
    worst: library.func('int32_t tollbar_policy_spec_worst_case(const void *spec, uint64_t window, _Out_ uint64_t *most)'),
    open: library.func('int32_t tollbar_table_open(const char *path, void **policies, size_t count, void *options, _Out_ void **out)'),
    make: library.func('int32_t tollbar_table_new(void **policies, size_t count, void *options, _Out_ void **out)'),
    policy: library.func('int32_t tollbar_table_get_policy(void *table, uint32_t policy, void *out)'),
    check: library.func(`int32_t tollbar_table_check(${KEY}, uint64_t cost, void *out)`),
    peek: library.func(`int32_t tollbar_table_peek(${KEY}, uint64_t cost, void *out)`),
    charge: library.func(`int32_t tollbar_table_charge(${KEY}, uint64_t cost, _Out_ uint64_t *rest)`),
    reserve: library.func(`int32_t tollbar_table_reserve(${KEY}, uint64_t cost, uint64_t patience, void *out)`),
    cancel: library.func(`int32_t tollbar_table_cancel(${KEY}, const void *reservation, _Out_ uint64_t *back)`),
    reset: library.func(`int32_t tollbar_table_reset(${KEY})`),
    more: library.func(`int32_t tollbar_table_more_after(${KEY}, uint64_t cost, void *decision, _Out_ uint64_t *more)`),
    fields: library.func('int32_t tollbar_http_fields(tollbar_http_limit *limits, size_t count, uint32_t fields, uint64_t utc, void *buffer, size_t capacity, _Out_ size_t *length)'),
    close: library.func('void tollbar_table_close(void *table)'),
    network: library.func('int32_t tollbar_network_parse(const void *text, size_t length, void *out)'),
    client: library.func('int32_t tollbar_prefix_of_client(const void *peer, size_t peer_length, const void *forwarded, size_t forwarded_length, const void *proxies, size_t count, uint32_t v4, uint32_t v6, void *out)'),
};
/** What makes a Table. Only this file has it, so that no program makes one of a handle that is none. */
const MAKE = Symbol('make');
/** The C struct of each decision, which `fields` needs. */
const structs = new WeakMap();

/** The library's number of an error that this file finds itself: none. */
const NO_NUMBER = 0;
const CLOSED = -7;

/**
 * The call failed. `code` is the name of the library's error, such as 'TOLLBAR_E_SYNTAX', and `errno` its number. For an argument of the
 * wrong type or range they are 'ERR_INVALID_ARG_VALUE' and 0.
 */
class TollbarError extends Error {
    constructor(message, errno = NO_NUMBER) {
        super(message);
        this.name = 'TollbarError';
        this.errno = Number.isInteger(errno) ? errno | 0 : NO_NUMBER;
        this.code = this.errno === NO_NUMBER ? 'ERR_INVALID_ARG_VALUE' : c.errname(this.errno);
    }
}

/**
 * Limits by key. Every process of the machine that opens the file decides by the same states: other Node processes, such as those of a
 * cluster, and programs in other languages. Methods take nanoseconds, and all but `wait` answer at once. They throw a TollbarError for a
 * wrong argument and for a closed table.
 *
 *     const logins = Table.open('/run/app/logins', '5/min burst 3', 100_000);
 *     if (!logins.allow(clientKey(request))) response.writeHead(429).end();
 *
 * Keys are strings or buffers; undefined is a request without a key, which is refused. `cost` is a number of permits, and
 * `policy` a number in the list of policies, from 0.
 */
class Table {
    #handle;
    /** The callers that wait, by policy and key. */
    #lines = new Map();
    #waiting = 0;

    constructor(made, handle) {
        if (made !== MAKE) throw new TollbarError('new Table is not for programs; expected Table.open or Table.private');
        this.#handle = handle;
    }

    /**
     * Opens the table in a file, or makes the file. /run and /dev/shm last until the machine stops. Use a directory of the service's own:
     * the library refuses a file that another user made or may replace. `policies` is a text such as '5/min burst 3', or an array of texts.
     * `capacity` is the number of keys that can have a debt at one time; 20 bytes each.
     */
    static open(path, policies, capacity) {
        textOf(path, 'a path');
        return make(policies, capacity, (specs, options, out) => c.open(path, specs, specs.length, options, out));
    }

    /** A table in this process's own memory. */
    static private(policies, capacity) {
        return make(policies, capacity, (specs, options, out) => c.make(specs, specs.length, options, out));
    }

    /** Takes permits of a key. Returns whether the request may pass. */
    allow(key, options) {
        const { cost, policy } = permitsOf(options), bytes = bytesOf(key);
        return checked(c.check(this.#open(), policy, bytes, bytes.length, cost, null)) === 0;
    }

    /** Takes permits of a key. Returns {allowed, remaining, retryAfter, resetAfter, reason}; times are seconds, and Infinity means never. */
    check(key, options) {
        return this.#decide(c.check, key, permitsOf(options));
    }

    /** Says what check would say, and takes nothing. */
    peek(key, options) {
        return this.#decide(c.peek, key, permitsOf(options));
    }

    /**
     * Takes permits of a key, and waits up to `timeout` seconds for them: forever without it. Returns a promise of the decision. It is one that does not
     * allow, and has charged nothing, if the permits would come later than `timeout`, if they never come, and at once if 1,024 callers of the table wait.
     * `signal` ends the wait: the promise is rejected with the signal's reason, and the permits go to the next caller.
     *
     * The callers of a key get their permits in the order in which they called. Only the first one holds a booking.
     */
    async wait(key, options) {
        const { cost, policy, timeout, signal } = waitOf(options), bytes = bytesOf(key);
        if (signal?.aborted) throw signal.reason;
        const caller = { bytes, cost, policy, deadline: performance.now() / 1e3 + timeout, timers: new Set() };
        const name = `${policy} ${bytes.toString('latin1')}`, line = this.#lines.get(name);
        // Behind others it comes after what the first one has booked, which the peek counts.
        const now = this.#decide(c.peek, bytes, caller);
        if (line !== undefined && isHopeless(now, timeout)) return now;
        if (this.#waiting === MOST_WAITERS) return line === undefined && now.allowed ? this.#decide(c.check, bytes, caller) : decided(now, DENIED, QUEUE_FULL);
        return this.#inLine(name, caller, signal);
    }

    /** Charges a key without asking, for what failed or was sent. Returns the permits that could not be charged. */
    charge(key, options) {
        const { cost, policy } = permitsOf(options), bytes = bytesOf(key), rest = [0];
        checked(c.charge(this.#open(), policy, bytes, bytes.length, cost, rest));
        return Number(rest[0]);
    }

    /** Lets a key begin again. Returns false and changes nothing if no slot is left, as after a dozen resets within the time of one debt. */
    reset(key, options) {
        const { policy } = read(options, { policy: 0 }), bytes = bytesOf(key);
        return checked(c.reset(this.#open(), numberOf(policy), bytes, bytes.length)) === 1;
    }

    /** The header fields that tell a client about a decision: Retry-After of a refusal, RateLimit-Policy and RateLimit. */
    fields(name, key, decision, options) {
        const { cost, policy } = permitsOf(options);
        const bytes = bytesOf(key), title = textOf(name, 'a name'), raw = structs.get(decision);
        if (raw === undefined) throw new TollbarError(`${kindOf(decision)} as a decision; expected one that check or peek has returned`);
        const spec = sized(SPEC_BYTES), more = [0], length = [0], buffer = Buffer.alloc(1024);
        checked(c.policy(this.#open(), policy, spec));
        checked(c.more(this.#open(), policy, bytes, bytes.length, cost, raw, more));
        const limit = {
            name: title, name_length: title.length, policy: spec, decision: raw,
            more_after_ns: more[0], partition: null, partition_length: 0,
        };
        const RETRY_AFTER = 1, DRAFT_11 = 32;
        checked(c.fields(limit, 1, RETRY_AFTER | DRAFT_11, 0, buffer, buffer.length, length));
        const lines = buffer.toString('latin1', 0, Number(length[0])).split('\r\n').filter((line) => line !== '');
        return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]));
    }

    /** Unmaps the table. A file stays as it is. Later calls throw, and the promises of callers that wait are rejected. */
    close() {
        if (this.#handle === null) return;
        const closed = new TollbarError('the table is closed', CLOSED);
        for (const line of this.#lines.values()) for (const caller of [...line].reverse()) this.#leave(line, caller, () => caller.reject(closed));
        c.close(this.#handle);
        this.#handle = null;
    }

    #open() {
        if (this.#handle === null) throw new TollbarError('the table is closed', CLOSED);
        return this.#handle;
    }

    #decide(call, key, { cost, policy }) {
        const bytes = bytesOf(key), raw = sized(DECISION_BYTES);
        checked(call(this.#open(), policy, bytes, bytes.length, cost, raw));
        return decisionOf(raw);
    }

    /** Puts a caller at the end of its key's line, and promises its decision. */
    #inLine(name, caller, signal) {
        const line = this.#lines.get(name) ?? [];
        line.name = name;
        this.#lines.set(name, line);
        line.push(caller);
        this.#waiting++;
        return new Promise((resolve, reject) => {
            const abort = () => this.#leave(line, caller, () => reject(signal.reason));
            Object.assign(caller, { resolve, reject, unlisten: () => signal?.removeEventListener('abort', abort) });
            signal?.addEventListener('abort', abort);
            if (line[0] === caller) this.#advance(line);
            // The first one knows when its permits come, and the others only that they come later.
            else at(caller, caller.deadline, () => this.#refuse(line, caller));
        });
    }

    /** Books for the first caller of a line, or tries again when its permits may be there. */
    #advance(line) {
        const [caller] = line, { bytes, cost, policy, deadline } = caller, booked = Buffer.alloc(RESERVATION_BYTES);
        const left = deadline - performance.now() / 1e3;
        try {
            if (checked(c.reserve(this.#open(), policy, bytes, bytes.length, cost, nanoseconds(left), booked)) === 0) {
                caller.booked = booked;
                at(caller, performance.now() / 1e3 + Number(booked.readBigUInt64LE(8)) / 1e9, () => {
                    caller.booked = undefined;
                    this.#leave(line, caller, () => caller.resolve(decided(this.#decide(c.peek, bytes, { cost: 0, policy }), ALLOWED)));
                });
                return;
            }
            // A window or a log books nothing ahead.
            let decision = this.#decide(c.peek, bytes, caller);
            if (decision.allowed || isHopeless(decision, left)) decision = this.#decide(c.check, bytes, caller);
            if (decision.allowed || isHopeless(decision, left)) this.#leave(line, caller, () => caller.resolve(decision));
            else at(caller, performance.now() / 1e3 + decision.retryAfter, () => this.#advance(line));
        } catch (problem) {
            this.#leave(line, caller, () => caller.reject(problem));
        }
    }

    /** The time of a caller behind others is up. */
    #refuse(line, caller) {
        const decision = decided(this.#decide(c.peek, caller.bytes, caller), DENIED);
        this.#leave(line, caller, () => caller.resolve(decision));
    }

    /** Takes a caller out of its line, and gives back what it has booked. */
    #leave(line, caller, answer) {
        const place = line.indexOf(caller);
        if (place < 0) return;
        line.splice(place, 1);
        this.#waiting--;
        if (line.length === 0) this.#lines.delete(line.name);
        caller.timers.forEach(clearTimeout);
        caller.unlisten();
        if (caller.booked !== undefined) c.cancel(this.#handle, caller.policy, caller.bytes, caller.bytes.length, caller.booked, [0]);
        answer();
        if (place === 0 && line.length > 0) {
            line[0].timers.forEach(clearTimeout);
            this.#advance(line);
        }
    }
}

/** The callers that wait for keys of a table at one time. */
const MOST_WAITERS = 1024;
/** Numbers of include/tollbar.h. */
const ALLOWED = 0;
const DENIED = 1;
const QUEUE_FULL = 7;
/** The longest time of a timer, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A decision of the bytes of its struct. */
function decisionOf(raw) {
    const decision = {
        allowed: raw.readUInt32LE(4) === ALLOWED,
        remaining: Number(raw.readBigUInt64LE(8)),
        retryAfter: seconds(raw.readBigUInt64LE(16)),
        resetAfter: seconds(raw.readBigUInt64LE(24)),
        reason: c.strreason(raw.readUInt32LE(32)),
    };
    structs.set(decision, raw);
    return decision;
}

/** Whether the permits come later than a caller waits, or never. */
function isHopeless(decision, patience) {
    return decision.retryAfter > patience || decision.retryAfter === Infinity;
}

/** A decision with another verdict, for a caller that has waited or may not wait. */
function decided(decision, verdict, reason) {
    const raw = Buffer.from(structs.get(decision));
    raw.writeUInt32LE(verdict, 4);
    if (verdict === ALLOWED) raw.writeBigUInt64LE(0n, 16);
    if (reason !== undefined) raw.writeUInt32LE(reason, 32);
    return decisionOf(raw);
}

/** Calls `then` when performance.now() has reached `time`, in seconds. A timer may fire up to a millisecond early. */
function at(caller, time, then) {
    const left = Math.ceil(time * 1e3 - performance.now());
    if (time === Infinity) return;
    const timer = setTimeout(() => {
        caller.timers.delete(timer);
        if (performance.now() < time * 1e3) at(caller, time, then);
        else then();
    }, Math.min(Math.max(left, 1), LONGEST_TIMER));
    caller.timers.add(timer);
}

/**
 * The key of an address in text: all of an IPv4 address, and the first 64 bits of an IPv6 address, since a host can change the others with every
 * request. A port, brackets and a zone do not count. It is the key that programs in other languages have for this address.
 * Throws a TollbarError for a text that is no address.
 */
function addressKey(address, options) {
    const { ipv4Bits, ipv6Bits } = read(options, { ipv4Bits: 32, ipv6Bits: 64 });
    const bytes = textOf(address, 'an address');
    // An empty text is a Unix socket to the library.
    const key = bytes.length === 0 ? undefined : keyOf(bytes, Buffer.alloc(0), [], numberOf(ipv4Bits), numberOf(ipv6Bits));
    if (key === undefined) throw new TollbarError(`"${address}" is no address`);
    return key;
}

/**
 * The key of the client that sent an http.IncomingMessage: that of the connection's address or, if the connection comes from a trusted proxy, of the
 * right-most address in X-Forwarded-For that no trusted proxy has. `proxies` has their networks: '10.0.0.0/8', an address, or 'unix:' for proxies that
 * connect by a Unix socket. Returns undefined if the client has no address: for a Unix socket, and after the client has closed the connection.
 */
function clientKey(request, proxies = []) {
    const { remoteAddress } = request.socket, { 'x-forwarded-for': forwarded = '' } = request.headers;
    return keyOf(textOf(remoteAddress ?? '', 'an address'), textOf(String(forwarded), 'a header'), proxies, 32, 64);
}

/** The bytes of a key, or undefined if there is no address. */
function keyOf(peer, forwarded, proxies, ipv4Bits, ipv6Bits) {
    const networks = Buffer.concat(Array.from(typeof proxies === 'string' ? [proxies] : proxies, networkOf)), prefix = Buffer.alloc(PREFIX_BYTES), NO_ADDRESS = -58;
    const count = networks.length / PREFIX_BYTES;
    const code = c.client(peer, peer.length, forwarded, forwarded.length, networks, count, ipv4Bits, ipv6Bits, prefix);
    if (code === NO_ADDRESS) return undefined;
    checked(code);
    return prefix.subarray(4, 4 + prefix.readUInt32LE(0));
}

function networkOf(text) {
    const bytes = textOf(text, 'a network'), network = Buffer.alloc(PREFIX_BYTES);
    if (c.network(bytes, bytes.length, network) === 0) return network;
    throw new TollbarError(`"${text}" is no network; expected one such as '10.0.0.0/8', without bits beyond its prefix, an address, or 'unix:'`);
}

/**
 * The most permits of one key that a policy admits in some half-open window of so many seconds, by
 * requests that cost 1 and come at the worst times: for '120/min' and 60 seconds 239, which are 120
 * at once and one each half second after that. Throws a TollbarError for a wrong policy, and for a
 * window that is no number or negative.
 */
function worstCase(policy, seconds) {
    if (typeof seconds !== 'number' ||
        !(seconds >= 0)) throw new TollbarError(`window ${shown(seconds)}; expected seconds, 0 or more`);
    const most = [0];
    checked(c.worst(parse(policy), nanoseconds(seconds), most));
    return Number(most[0]);
}

/** The library's UINT64_MAX, as a time: never. */
const NEVER = 0xffffffffffffffffn;

function make(policies, capacity, call) {
    const texts = Array.isArray(policies) ? policies : [policies];
    if (texts.length === 0) throw new TollbarError('no policy; expected a policy such as "5/min", or several');
    if (!Number.isSafeInteger(capacity) || capacity < 1) throw new TollbarError(`capacity ${shown(capacity)}; expected the number of keys, 1 or more`);
    const options = sized(OPTIONS_BYTES), out = [null];
    options.writeBigUInt64LE(BigInt(capacity), 8);
    checked(call(Array.from(texts, parse), options, out));
    return new Table(MAKE, out[0]);
}

function parse(text) {
    const spec = sized(SPEC_BYTES), error = sized(ERROR_BYTES), bytes = textOf(text, 'a policy');
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

/** A key's bytes. None are a request without a key. */
function bytesOf(key) {
    if (typeof key === 'string') return Buffer.from(key);
    // A copy, because an object's own `length` may be another than that of its memory.
    if (key instanceof Uint8Array) return Buffer.from(key);
    if (key === undefined || key === null) return Buffer.alloc(0);
    throw new TollbarError(`${kindOf(key)} as a key; expected a string or bytes`);
}

function textOf(text, what) {
    if (typeof text === 'string') return Buffer.from(text);
    throw new TollbarError(`${kindOf(text)} as ${what}; expected a string`);
}

function kindOf(value) {
    return value === null ? 'null' : typeof value;
}

/** A number or a string as it is; of other values, some of which have no text, their type. */
function shown(value) {
    return typeof value === 'number' || typeof value === 'string' ? value : kindOf(value);
}

/** A number that fits into a uint32_t, such as a policy's. */
function numberOf(number) {
    if (Number.isSafeInteger(number) && number >= 0 && number < 2 ** 32) return number;
    throw new TollbarError(`policy or bits ${shown(number)}; expected a whole number, 0 or more`);
}

function costOf(cost) {
    if (Number.isSafeInteger(cost) && cost >= 0) return cost;
    throw new TollbarError(`cost ${shown(cost)}; expected a whole number, 0 or more`);
}

/** The options of a call, with what is not given. */
function read(given, known) {
    if (given === undefined) return known;
    if (given === null || typeof given !== 'object') throw new TollbarError(`options ${shown(given)}; expected an object with ${Object.keys(known).join(', ')}`);
    const made = { ...known };
    for (const name of Object.keys(given)) {
        if (!Object.hasOwn(known, name)) throw new TollbarError(`option "${name}"; expected ${Object.keys(known).join(', ')}`);
        if (given[name] !== undefined) made[name] = given[name];
    }
    return made;
}

function permitsOf(options) {
    const { cost, policy } = read(options, { cost: 1, policy: 0 });
    return { cost: costOf(cost), policy: numberOf(policy) };
}

function waitOf(options) {
    const { cost, policy, timeout, signal } = read(options, { cost: 1, policy: 0, timeout: Infinity, signal: undefined });
    if (typeof timeout !== 'number' || !(timeout >= 0)) throw new TollbarError(`timeout ${shown(timeout)}; expected seconds, 0 or more`);
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TollbarError(`${kindOf(signal)} as a signal; expected an AbortSignal`);
    return { cost: costOf(cost), policy: numberOf(policy), timeout, signal };
}

function seconds(ns) {
    return ns === NEVER ? Infinity : Number(ns) / 1e9;
}

/** Nanoseconds for C. 2^64 and more, 584 years, are the library's longest time. */
function nanoseconds(seconds) {
    const whole = Math.round(Math.max(seconds, 0) * 1e9);
    return whole < 2 ** 64 ? BigInt(whole) : NEVER;
}

module.exports = { Table, TollbarError, addressKey, clientKey, worstCase };
