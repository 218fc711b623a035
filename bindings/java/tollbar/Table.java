package tollbar;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.IntSupplier;

/**
 * Limits by key, in memory that processes share. Every process of the machine that opens the file decides by the same states: other JVMs,
 * and programs in other languages.
 *
 * <pre>
 * Table logins = Table.open("/run/app/logins", "5/min burst 3", 100_000);
 * if (!logins.allow(Table.addressKey(address))) response.setStatus(429);
 * </pre>
 *
 * Any number of threads may make calls at once. A call takes about a microsecond and never waits for another. Methods throw {@link Failure}
 * for a wrong argument, and IllegalStateException for a closed table. A policy is its number in the list of policies, from 0. A key is bytes, or a
 * string, whose bytes in UTF-8 are the key.
 */
public final class Table implements AutoCloseable {
    /** The call failed. */
    public static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        /** The library's number of the error, TOLLBAR_E_*; 0 if the library was not called. */
        public final int code;
        /** The library's name of the error, such as "TOLLBAR_E_SYNTAX"; "ARGUMENT" if the library was not called. */
        public final String name;

        Failure(String message, int code) {
            super(message);
            this.code = code;
            name = code == 0 ? "ARGUMENT" : C.tollbar_errname(code);
        }
    }

    /** What a table decided about one request. */
    public static final class Decision {
        /** Whether the request may pass. */
        public final boolean allowed;
        /** Permits left. */
        public final long remaining;
        /** Nanoseconds until the request could pass; Long.MAX_VALUE if it never can. */
        public final long retryAfterNanos;
        /** Nanoseconds until the key is as good as fresh; Long.MAX_VALUE if it never is. */
        public final long resetAfterNanos;
        /** Why, in a few words, such as "over the rate". */
        public final String reason;
        private final Memory struct;

        private Decision(Memory struct) {
            this.struct = struct;
            allowed = struct.getInt(4) == 0;
            remaining = signed(struct.getLong(8));
            retryAfterNanos = signed(struct.getLong(16));
            resetAfterNanos = signed(struct.getLong(24));
            reason = C.tollbar_strreason(struct.getInt(32));
        }

        /** The time until the request could pass; empty if it never can. */
        public Optional<Duration> retryAfter() {
            return duration(retryAfterNanos);
        }

        /** The time until the key is as good as fresh; empty if it never is. */
        public Optional<Duration> resetAfter() {
            return duration(resetAfterNanos);
        }

        @Override
        public String toString() {
            return "Decision[" + (allowed ? "allowed" : "denied: " + reason) + ", remaining=" + remaining + ", retryAfter="
                    + text(retryAfter()) + ", resetAfter=" + text(resetAfter()) + "]";
        }

        private static String text(Optional<Duration> time) {
            return time.map(Duration::toString).orElse("never");
        }

        private static Optional<Duration> duration(long nanos) {
            return nanos == Long.MAX_VALUE ? Optional.empty() : Optional.of(Duration.ofNanos(nanos));
        }

        /** The library's numbers are unsigned, and Java's long is not. A number of 2^63 or more arrives as a negative one and becomes Long.MAX_VALUE. */
        private static long signed(long value) {
            return value < 0 ? Long.MAX_VALUE : value;
        }
    }

    /** Functions of include/tollbar.h. Structs are memory here, which C fills in; each begins with its size in bytes. */
    private static final class C {
        static {
            String library = System.getenv("TOLLBAR_LIBRARY");
            Native.register(C.class, library != null ? library : "libtollbar.so.1");
        }

        static native String tollbar_strerror(int code);

        static native String tollbar_errname(int code);

        static native String tollbar_strreason(int reason);

        static native int tollbar_policy_spec_parse(byte[] text, long length, Pointer out, Pointer error);

        static native int tollbar_policy_spec_worst_case(Pointer spec, long window, LongByReference most);

        static native int tollbar_table_open(String path, Pointer policies, long count, Pointer options, PointerByReference out);

        static native int tollbar_table_new(Pointer policies, long count, Pointer options, PointerByReference out);

        static native int tollbar_table_get_policy(Pointer table, int policy, Pointer out);

        static native int tollbar_table_check(Pointer table, int policy, byte[] key, long length, long cost, Pointer out);

        static native int tollbar_table_peek(Pointer table, int policy, byte[] key, long length, long cost, Pointer out);

        static native int tollbar_table_charge(Pointer table, int policy, byte[] key, long length, long cost, LongByReference rest);

        static native int tollbar_table_reset(Pointer table, int policy, byte[] key, long length);

        static native int tollbar_table_more_after(
                Pointer table, int policy, byte[] key, long length, long cost, Pointer decision, LongByReference more);

        static native int tollbar_http_fields(
                Pointer limits, long count, int fields, long utc, byte[] buffer, long capacity, LongByReference length);

        static native void tollbar_table_close(Pointer table);

        static native int tollbar_prefix_parse(byte[] text, long length, int ipv4Bits, int ipv6Bits, Pointer out);
    }

    private static final int SPEC_BYTES = 512;
    private static final int DECISION_BYTES = 40;
    private static final int OPTIONS_BYTES = 56;
    private static final int ERROR_BYTES = 24;
    private static final int HTTP_LIMIT_BYTES = 56;
    private static final int PREFIX_BYTES = 24;

    /** Calls hold the read lock, so that close waits for them. */
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

    private final String text;
    private Pointer handle;

    private Table(Pointer handle, String text) {
        this.handle = handle;
        this.text = text;
    }

    /**
     * Opens the table in a file, or makes the file. /run and /dev/shm last until the machine stops. Use a directory of the service's own: the
     * library refuses a file that another user made or may replace.
     *
     * @param policies texts such as "5/min burst 3" or "10/s; 1000/day"
     * @param capacity the number of keys that can have a debt at one time; 20 bytes each
     */
    public static Table open(String path, List<String> policies, long capacity) {
        return make(Objects.requireNonNull(path, "path"), policies, capacity);
    }

    /** The same with one policy. */
    public static Table open(String path, String policy, long capacity) {
        return open(path, List.of(policy), capacity);
    }

    /** A table in this process's own memory. */
    public static Table inMemory(List<String> policies, long capacity) {
        return make(null, policies, capacity);
    }

    /** The same with one policy. */
    public static Table inMemory(String policy, long capacity) {
        return inMemory(List.of(policy), capacity);
    }

    /**
     * The key of an address in text: all of an IPv4 address, and the first 64 bits of an IPv6 address, since a host can change the others with every
     * request. A port, brackets and a zone do not count. It is the key that programs in other languages have for this address. Throws
     * {@link Failure} for a text that is no address.
     */
    public static byte[] addressKey(String address) {
        return addressKey(address, 32, 64);
    }

    /** The same with the first bits of an address, up to 32 of IPv4 and 128 of IPv6. */
    public static byte[] addressKey(String address, int ipv4Bits, int ipv6Bits) {
        byte[] text = bytes(address);
        Memory prefix = new Memory(PREFIX_BYTES);
        checked(C.tollbar_prefix_parse(text, text.length, ipv4Bits, ipv6Bits, prefix));
        return prefix.getByteArray(4, prefix.getInt(0));
    }

    /**
     * The most permits of one key that a policy admits in some half-open window of so many nanoseconds, by
     * requests that cost 1 and come at the worst times: for "120/min" and a minute 239, which are
     * 120 at once and one each half second after that. Long.MAX_VALUE stands for more. Throws
     * {@link Failure} for a wrong policy, and for a negative window.
     */
    public static long worstCase(String policy, long windowNanos) {
        if (windowNanos < 0) {
            throw new Failure("window " + windowNanos + "; expected nanoseconds, 0 or more", 0);
        }
        Memory spec = sized(SPEC_BYTES);
        parse(policy, spec);
        LongByReference most = new LongByReference();
        checked(C.tollbar_policy_spec_worst_case(spec, windowNanos, most));
        return Decision.signed(most.getValue());
    }

    /** The same for a window as a Duration. */
    public static long worstCase(String policy, Duration window) {
        try {
            return worstCase(policy, window.toNanos());
        } catch (ArithmeticException tooLong) {
            // 2^63 ns, 292 years, or less than none.
            return worstCase(policy, window.isNegative() ? -1 : Long.MAX_VALUE);
        }
    }

    /** Takes one permit of a key under the first policy. Returns whether the request may pass. */
    public boolean allow(String key) {
        return allow(bytes(key), 1, 0);
    }

    /** Takes one permit of a key under the first policy. Returns whether the request may pass. */
    public boolean allow(byte[] key) {
        return allow(key, 1, 0);
    }

    /** Takes permits of a key. Returns whether the request may pass. */
    public boolean allow(String key, long cost, int policy) {
        return allow(bytes(key), cost, policy);
    }

    /** Takes permits of a key. Returns whether the request may pass. */
    public boolean allow(byte[] bytes, long cost, int policy) {
        return call(() -> C.tollbar_table_check(handle, policy, bytes, bytes.length, costOf(cost), null)) == 0;
    }

    /** Takes one permit of a key under the first policy, and says how many are left or how long to wait. */
    public Decision check(String key) {
        return check(bytes(key), 1, 0);
    }

    /** Takes one permit of a key under the first policy, and says how many are left or how long to wait. */
    public Decision check(byte[] key) {
        return check(key, 1, 0);
    }

    /** Takes permits of a key, and says how many are left or how long to wait. */
    public Decision check(String key, long cost, int policy) {
        return check(bytes(key), cost, policy);
    }

    /** Takes permits of a key, and says how many are left or how long to wait. */
    public Decision check(byte[] bytes, long cost, int policy) {
        Memory decision = sized(DECISION_BYTES);
        call(() -> C.tollbar_table_check(handle, policy, bytes, bytes.length, costOf(cost), decision));
        return new Decision(decision);
    }

    /** Says what check would say, and takes nothing. */
    public Decision peek(String key) {
        return peek(bytes(key), 1, 0);
    }

    /** Says what check would say, and takes nothing. */
    public Decision peek(byte[] key) {
        return peek(key, 1, 0);
    }

    /** Says what check would say, and takes nothing. */
    public Decision peek(String key, long cost, int policy) {
        return peek(bytes(key), cost, policy);
    }

    /** Says what check would say, and takes nothing. */
    public Decision peek(byte[] bytes, long cost, int policy) {
        Memory decision = sized(DECISION_BYTES);
        call(() -> C.tollbar_table_peek(handle, policy, bytes, bytes.length, costOf(cost), decision));
        return new Decision(decision);
    }

    /** Charges a key one permit of the first policy without asking. Returns the permits that could not be charged. */
    public long charge(String key) {
        return charge(bytes(key), 1, 0);
    }

    /** Charges a key one permit of the first policy without asking. Returns the permits that could not be charged. */
    public long charge(byte[] key) {
        return charge(key, 1, 0);
    }

    /** Charges a key without asking, for what failed or was sent. Returns the permits that could not be charged. */
    public long charge(String key, long cost, int policy) {
        return charge(bytes(key), cost, policy);
    }

    /** Charges a key without asking, for what failed or was sent. Returns the permits that could not be charged. */
    public long charge(byte[] bytes, long cost, int policy) {
        LongByReference rest = new LongByReference();
        call(() -> C.tollbar_table_charge(handle, policy, bytes, bytes.length, costOf(cost), rest));
        return rest.getValue();
    }

    /** Lets a key begin again under the first policy. */
    public boolean reset(String key) {
        return reset(bytes(key), 0);
    }

    /** Lets a key begin again under the first policy. */
    public boolean reset(byte[] key) {
        return reset(key, 0);
    }

    /** Lets a key begin again. Returns false and changes nothing if no slot is left, as after a dozen resets within the time of one debt. */
    public boolean reset(String key, int policy) {
        return reset(bytes(key), policy);
    }

    /** Lets a key begin again. Returns false and changes nothing if no slot is left, as after a dozen resets within the time of one debt. */
    public boolean reset(byte[] bytes, int policy) {
        return call(() -> C.tollbar_table_reset(handle, policy, bytes, bytes.length)) == 1;
    }

    /** The header fields that tell a client about a decision on one permit of the first policy. */
    public Map<String, String> fields(String name, String key, Decision decision) {
        return fields(name, bytes(key), decision, 1, 0);
    }

    /** The header fields that tell a client about a decision on one permit of the first policy. */
    public Map<String, String> fields(String name, byte[] key, Decision decision) {
        return fields(name, key, decision, 1, 0);
    }

    /** The header fields that tell a client about a decision: Retry-After of a refusal, RateLimit-Policy and RateLimit. */
    public Map<String, String> fields(String name, String key, Decision decision, long cost, int policy) {
        return fields(name, bytes(key), decision, cost, policy);
    }

    /** The header fields that tell a client about a decision: Retry-After of a refusal, RateLimit-Policy and RateLimit. */
    public Map<String, String> fields(String name, byte[] bytes, Decision decision, long cost, int policy) {
        byte[] title = bytes(name);
        Memory spec = sized(SPEC_BYTES);
        LongByReference more = new LongByReference();
        call(() -> C.tollbar_table_get_policy(handle, policy, spec));
        call(() -> C.tollbar_table_more_after(handle, policy, bytes, bytes.length, costOf(cost), decision.struct, more));
        Memory text = new Memory(title.length + 1);
        text.write(0, title, 0, title.length);
        Memory limit = new Memory(HTTP_LIMIT_BYTES);
        limit.clear();
        limit.setPointer(0, text);
        limit.setLong(8, title.length);
        limit.setPointer(16, spec);
        limit.setPointer(24, decision.struct);
        limit.setLong(32, more.getValue());
        byte[] buffer = new byte[1024];
        LongByReference length = new LongByReference();
        final int retryAfter = 1;
        final int draft11 = 32;
        checked(C.tollbar_http_fields(limit, 1, retryAfter | draft11, 0, buffer, buffer.length, length));
        // `limit` has their addresses only, so the collector must not free them before the call has ended.
        Reference.reachabilityFence(text);
        Reference.reachabilityFence(spec);
        Reference.reachabilityFence(decision);
        Map<String, String> fields = new LinkedHashMap<>();
        for (String line : new String(buffer, 0, (int) length.getValue(), StandardCharsets.US_ASCII).split("\r\n")) {
            int colon = line.indexOf(": ");
            if (colon > 0) {
                fields.put(line.substring(0, colon), line.substring(colon + 2));
            }
        }
        return fields;
    }

    /** Unmaps the table once the running calls have ended. A file stays as it is. Later calls throw. */
    @Override
    public void close() {
        lock.writeLock().lock();
        try {
            if (handle != null) {
                C.tollbar_table_close(handle);
                handle = null;
            }
        } finally {
            lock.writeLock().unlock();
        }
    }

    @Override
    public String toString() {
        return text;
    }

    private static Table make(String path, List<String> given, long capacity) {
        List<String> policies = List.copyOf(given);
        if (policies.isEmpty() || capacity < 1) {
            throw new Failure("a table needs a policy, and a capacity of at least 1", 0);
        }
        int count = policies.size();
        Memory specs = new Memory((long) count * SPEC_BYTES);
        Memory pointers = new Memory((long) count * Native.POINTER_SIZE);
        for (int i = 0; i < count; i++) {
            Pointer spec = specs.share((long) i * SPEC_BYTES, SPEC_BYTES);
            parse(policies.get(i), spec);
            pointers.setPointer((long) i * Native.POINTER_SIZE, spec);
        }
        Memory options = sized(OPTIONS_BYTES);
        options.setLong(8, capacity);
        PointerByReference out = new PointerByReference();
        checked(path == null
                ? C.tollbar_table_new(pointers, count, options, out)
                : C.tollbar_table_open(path, pointers, count, options, out));
        // `pointers` has their addresses only, so the collector must not free them before the call has ended.
        Reference.reachabilityFence(specs);
        return new Table(out.getValue(), "Table[" + (path == null ? "in memory" : path) + ", " + String.join(", ", policies) + ", " + capacity + " keys]");
    }

    private static void parse(String text, Pointer spec) {
        byte[] bytes = bytes(text);
        Memory error = sized(ERROR_BYTES);
        spec.clear(SPEC_BYTES);
        spec.setInt(0, SPEC_BYTES);
        int code = C.tollbar_policy_spec_parse(bytes, bytes.length, spec, error);
        if (code < 0) {
            Pointer expected = error.getPointer(16);
            throw new Failure("policy \"" + text + "\", column " + error.getLong(8) + ": expected "
                    + (expected != null ? expected.getString(0, "UTF-8") : C.tollbar_strerror(code)), code);
        }
    }

    /** Makes a call while no thread closes the table. */
    private int call(IntSupplier function) {
        lock.readLock().lock();
        try {
            if (handle == null) {
                throw new IllegalStateException("the table is closed");
            }
            return checked(function.getAsInt());
        } finally {
            lock.readLock().unlock();
        }
    }

    /** A call's result. Negative numbers are errors. */
    private static int checked(int result) {
        if (result < 0) {
            throw new Failure(C.tollbar_strerror(result), result);
        }
        return result;
    }

    /** A struct: zeroes, after its size. */
    private static Memory sized(int bytes) {
        Memory struct = new Memory(bytes);
        struct.clear();
        struct.setInt(0, bytes);
        return struct;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static long costOf(long cost) {
        if (cost < 0) {
            throw new Failure("cost " + cost + "; expected 0 or more", 0);
        }
        return cost;
    }
}
