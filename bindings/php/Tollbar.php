<?php

declare(strict_types=1);

namespace Tollbar;

/** The call failed: the library's message, and its number (TOLLBAR_E_*) as the code. */
final class Error extends \RuntimeException
{
}

/** What a table decided about one request. */
final class Decision
{
    public function __construct(
        /** Whether the request may pass. */
        public readonly bool $allowed,
        /** Permits left. */
        public readonly int $remaining,
        /** Seconds until the request could pass: 0 if it passes, INF if it never can. */
        public readonly float $retryAfter,
        /** Seconds until the key is as good as fresh; INF if it never is. */
        public readonly float $resetAfter,
        /** @internal The bytes of the library's struct. */
        public readonly string $struct,
    ) {
    }
}

/**
 * Limits by key, in memory that processes share. Every process of the machine that opens the file decides by the same states: other
 * PHP workers, and programs in other languages.
 *
 *     $logins = Table::open('/run/app/logins', '5/min burst 3', 100_000);
 *     if (!$logins->allow(Table::addressKey($_SERVER['REMOTE_ADDR']))) { http_response_code(429); exit; }
 *
 * A method throws Error for a wrong argument and for a closed table. Any number of processes may make calls at once.
 */
final class Table
{
    /** The declarations of include/tollbar.h that this file uses. */
    private const DECLARATIONS = <<<'C'
        typedef struct { char name[16]; uint64_t reserve; } tollbar_class;
        typedef struct {
            uint32_t struct_size, algorithm;
            uint64_t limit, period_ns, burst, init, slack, warm_up_ns;
            uint32_t cold, segments, mode, anchor, unit, flags;
            uint64_t ban_ns;
            uint32_t ban_after, from;
            uint64_t second_limit, second_period_ns, second_burst;
            tollbar_class classes[4];
            uint16_t knots[128];
            uint64_t zone[5];
        } tollbar_policy_spec;
        typedef struct { uint32_t struct_size; int32_t code; uint64_t column; const char *expected; } tollbar_policy_error;
        typedef struct {
            uint32_t struct_size, on_full;
            uint64_t capacity, seed;
            uint32_t missing_key, clock, mode, flags, waiters, hot_keys, overrides, room;
        } tollbar_table_options;
        typedef struct {
            uint32_t struct_size, verdict;
            uint64_t remaining, retry_after_ns, reset_after_ns;
            uint32_t reason, bound;
        } tollbar_decision;
        typedef struct {
            const char *name;
            size_t name_length;
            const tollbar_policy_spec *policy;
            const tollbar_decision *decision;
            uint64_t more_after_ns;
            const void *partition;
            size_t partition_length;
        } tollbar_http_limit;
        typedef struct tollbar_table tollbar_table;
        const char *tollbar_strerror(int32_t code);
        int32_t tollbar_policy_spec_parse(const char *text, size_t len, tollbar_policy_spec *out, tollbar_policy_error *error);
        int32_t tollbar_policy_spec_worst_case(const tollbar_policy_spec *spec, uint64_t window_ns, uint64_t *most);
        int32_t tollbar_table_open(const char *path, const tollbar_policy_spec *const *policies, size_t count,
            const tollbar_table_options *options, tollbar_table **out);
        int32_t tollbar_table_new_shared(const tollbar_policy_spec *const *policies, size_t count, const tollbar_table_options *options,
            tollbar_table **out);
        int32_t tollbar_table_get_policy(const tollbar_table *table, uint32_t policy, tollbar_policy_spec *out);
        int32_t tollbar_table_check(const tollbar_table *table, uint32_t policy, const char *key, size_t length, uint64_t cost,
            tollbar_decision *out);
        int32_t tollbar_table_peek(const tollbar_table *table, uint32_t policy, const char *key, size_t length, uint64_t cost,
            tollbar_decision *out);
        int32_t tollbar_table_charge(const tollbar_table *table, uint32_t policy, const char *key, size_t length, uint64_t cost, uint64_t *rest);
        int32_t tollbar_table_reset(const tollbar_table *table, uint32_t policy, const char *key, size_t length);
        int32_t tollbar_table_more_after(const tollbar_table *table, uint32_t policy, const char *key, size_t length, uint64_t cost,
            const tollbar_decision *decision, uint64_t *more_after_ns);
        int32_t tollbar_http_fields(const tollbar_http_limit *limits, size_t count, uint32_t fields, uint64_t utc_ns, char *buffer,
            size_t capacity, size_t *length);
        void tollbar_table_close(tollbar_table *table);
        typedef struct { uint32_t length; uint8_t bytes[20]; } tollbar_prefix;
        int32_t tollbar_prefix_parse(const char *text, size_t length, uint32_t ipv4_bits, uint32_t ipv6_bits, tollbar_prefix *out);
        C;

    private static ?\FFI $library = null;

    /** Null in a closed table, and in one that was not made by this class. */
    private ?\FFI\CData $handle = null;

    private function __construct(\FFI\CData $handle)
    {
        $this->handle = $handle;
    }

    /**
     * Opens the table in a file, or makes the file. /run and /dev/shm last until the machine stops. Use a directory of the service's own: the
     * library refuses a file that another user made or may replace.
     *
     * @param string|list<string> $policies such as '5/min burst 3' or ['10/s; 1000/day', '5/min ban 1h']; calls name them by number, from 0
     * @param int $capacity the number of keys that can have a debt at one time; 20 bytes each
     */
    public static function open(string $path, string|array $policies, int $capacity): self
    {
        return self::made($policies, $capacity, $path);
    }

    /** Makes a table in memory that this process shares with the processes that it forks later. */
    public static function shared(string|array $policies, int $capacity): self
    {
        return self::made($policies, $capacity, null);
    }

    /**
     * The key of an address in text, such as $_SERVER['REMOTE_ADDR']: all of an IPv4 address, and the first 64 bits of an IPv6 address, since a
     * host can change the others with every request. A port, brackets and a zone do not count. It is the key that programs in other languages
     * have for this address. Throws Error for a text that is no address.
     */
    public static function addressKey(string $address, int $ipv4Bits = 32, int $ipv6Bits = 64): string
    {
        $library = self::library();
        $prefix = $library->new('tollbar_prefix');
        self::checked($library->tollbar_prefix_parse($address, \strlen($address), self::number($ipv4Bits), self::number($ipv6Bits), \FFI::addr($prefix)));
        return \FFI::string($prefix->bytes, $prefix->length);
    }

    /**
     * The most permits of one key that a policy admits in some half-open window of so many seconds, by
     * requests that cost 1 and come at the worst times: for '120/min' and 60.0 seconds 239, which
     * are 120 at once and one each half second after that. PHP_INT_MAX stands for more. Throws
     * Error for a wrong policy, and for a negative window.
     */
    public static function worstCase(string $policy, float $seconds): int
    {
        $nanoseconds = \round($seconds * 1e9);
        // A window of 2^63 ns or more, 292 years, is the longest of PHP's.
        $window = $nanoseconds >= 2.0 ** 63 ? \PHP_INT_MAX : ($nanoseconds >= 0 ? (int) $nanoseconds : -1);
        if ($window < 0) {
            throw new Error("window $seconds; expected seconds, 0 or more");
        }
        $library = self::library();
        $spec = self::sized('tollbar_policy_spec');
        self::parse($policy, $spec);
        $most = $library->new('uint64_t');
        self::checked($library->tollbar_policy_spec_worst_case(\FFI::addr($spec), $window, \FFI::addr($most)));
        return $most->cdata < 0 ? \PHP_INT_MAX : $most->cdata;
    }

    /** Takes permits of a key. Returns whether the request may pass. */
    public function allow(string $key, int $cost = 1, int $policy = 0): bool
    {
        return self::checked(self::library()->tollbar_table_check($this->handle(), self::number($policy), $key, \strlen($key), self::cost($cost), null)) === 0;
    }

    /** Takes permits of a key, and says how many are left or how long to wait. */
    public function check(string $key, int $cost = 1, int $policy = 0): Decision
    {
        $decision = self::decision();
        self::checked(self::library()->tollbar_table_check(
            $this->handle(), self::number($policy), $key, \strlen($key), self::cost($cost), \FFI::addr($decision),
        ));
        return self::answer($decision);
    }

    /** Says what check would say, and takes nothing. */
    public function peek(string $key, int $cost = 1, int $policy = 0): Decision
    {
        $decision = self::decision();
        self::checked(self::library()->tollbar_table_peek(
            $this->handle(), self::number($policy), $key, \strlen($key), self::cost($cost), \FFI::addr($decision),
        ));
        return self::answer($decision);
    }

    /** Charges a key without asking, for what failed or was sent. Returns the permits that could not be charged. */
    public function charge(string $key, int $cost = 1, int $policy = 0): int
    {
        $rest = self::library()->new('uint64_t');
        self::checked(self::library()->tollbar_table_charge(
            $this->handle(), self::number($policy), $key, \strlen($key), self::cost($cost), \FFI::addr($rest),
        ));
        return $rest->cdata;
    }

    /** Lets a key begin again. Returns false and changes nothing if no slot is left, as after a dozen resets within the time of one debt. */
    public function reset(string $key, int $policy = 0): bool
    {
        return self::checked(self::library()->tollbar_table_reset($this->handle(), self::number($policy), $key, \strlen($key))) === 1;
    }

    /**
     * The header fields that tell a client about a decision: Retry-After of a refusal, RateLimit-Policy and RateLimit.
     *
     * @return array<string, string>
     */
    public function fields(string $name, string $key, Decision $decision, int $cost = 1, int $policy = 0): array
    {
        $library = self::library();
        $spec = self::sized('tollbar_policy_spec');
        self::checked($library->tollbar_table_get_policy($this->handle(), self::number($policy), \FFI::addr($spec)));
        $data = self::decision();
        $struct = $decision->struct;
        if (\strlen($struct) !== \FFI::sizeof($data)) {
            throw new Error('a decision that check or peek has not returned');
        }
        \FFI::memcpy($data, $struct, \FFI::sizeof($data));
        $data->struct_size = \FFI::sizeof($data);
        $more = $library->new('uint64_t');
        self::checked($library->tollbar_table_more_after(
            $this->handle(), self::number($policy), $key, \strlen($key), self::cost($cost), \FFI::addr($data), \FFI::addr($more),
        ));
        // C keeps no pointer to these bytes after the call.
        $text = self::bytes($name);
        $limit = $library->new('tollbar_http_limit');
        $limit->name = $library->cast('const char *', \FFI::addr($text));
        $limit->name_length = \strlen($name);
        $limit->policy = \FFI::addr($spec);
        $limit->decision = \FFI::addr($data);
        $limit->more_after_ns = $more->cdata;
        $length = $library->new('size_t');
        $buffer = $library->new('char[1024]');
        // Retry-After, and RateLimit of drafts 08 to 11.
        self::checked($library->tollbar_http_fields(\FFI::addr($limit), 1, 1 | 32, 0, $buffer, 1024, \FFI::addr($length)));
        $fields = [];
        foreach (\explode("\r\n", \rtrim(\FFI::string($buffer, $length->cdata))) as $line) {
            if (\str_contains($line, ': ')) {
                [$field, $value] = \explode(': ', $line, 2);
                $fields[$field] = $value;
            }
        }
        return $fields;
    }

    /** Unmaps the table. A file stays as it is. Later calls throw. */
    public function close(): void
    {
        if ($this->handle !== null) {
            self::library()->tollbar_table_close($this->handle);
            $this->handle = null;
        }
    }

    public function __destruct()
    {
        $this->close();
    }

    /** Two objects would close one table. */
    private function __clone()
    {
    }

    private static function made(string|array $policies, int $capacity, ?string $path): self
    {
        $library = self::library();
        $policies = (array) $policies;
        $count = \count($policies);
        if ($count === 0 || $capacity < 1) {
            throw new Error('a table needs a policy, and a capacity of at least 1');
        }
        $specs = $library->new("tollbar_policy_spec[$count]");
        $pointers = $library->new("const tollbar_policy_spec *[$count]");
        foreach (\array_values($policies) as $i => $text) {
            self::parse($text, $specs[$i]);
            $pointers[$i] = \FFI::addr($specs[$i]);
        }
        $options = self::sized('tollbar_table_options');
        $options->capacity = $capacity;
        $out = $library->new('tollbar_table *');
        self::checked($path === null
            ? $library->tollbar_table_new_shared($pointers, $count, \FFI::addr($options), \FFI::addr($out))
            : $library->tollbar_table_open($path, $pointers, $count, \FFI::addr($options), \FFI::addr($out)));
        return new self($out);
    }

    private static function parse(string $text, \FFI\CData $spec): void
    {
        $library = self::library();
        $spec->struct_size = \FFI::sizeof($spec);
        $error = self::sized('tollbar_policy_error');
        $code = $library->tollbar_policy_spec_parse($text, \strlen($text), \FFI::addr($spec), \FFI::addr($error));
        if ($code < 0) {
            $expected = $error->expected === null ? $library->tollbar_strerror($code) : \FFI::string($error->expected);
            throw new Error("policy \"$text\", column {$error->column}: expected $expected", $code);
        }
    }

    private static function library(): \FFI
    {
        return self::$library ??= \FFI::cdef(self::DECLARATIONS, \getenv('TOLLBAR_LIBRARY') ?: 'libtollbar.so.1');
    }

    private function handle(): \FFI\CData
    {
        return $this->handle ?? throw new Error('the table is closed');
    }

    /** A number of 32 bits, such as a policy's. */
    private static function number(int $number): int
    {
        return $number >= 0 && $number < 1 << 32 ? $number : throw new Error("policy or bits $number; expected a whole number, 0 or more");
    }

    private static function cost(int $cost): int
    {
        return $cost >= 0 ? $cost : throw new Error("cost $cost; expected 0 or more");
    }

    /** A call's result; negative numbers are errors. */
    private static function checked(int $result): int
    {
        return $result >= 0 ? $result : throw new Error(self::library()->tollbar_strerror($result), $result);
    }

    private static function sized(string $type): \FFI\CData
    {
        $struct = self::library()->new($type);
        $struct->struct_size = \FFI::sizeof($struct);
        return $struct;
    }

    private static function decision(): \FFI\CData
    {
        return self::sized('tollbar_decision');
    }

    private static function bytes(string $text): \FFI\CData
    {
        $bytes = self::library()->new('char[' . (\strlen($text) + 1) . ']');
        \FFI::memcpy($bytes, $text, \strlen($text));
        return $bytes;
    }

    private static function answer(\FFI\CData $decision): Decision
    {
        // PHP has no unsigned integers: a negative one is 2^63 or more, and UINT64_MAX means never.
        $seconds = static fn (int $ns): float => $ns < 0 ? \INF : $ns / 1e9;
        $remaining = $decision->remaining;
        return new Decision(
            $decision->verdict === 0,
            $remaining < 0 ? \PHP_INT_MAX : $remaining,
            $seconds($decision->retry_after_ns),
            $seconds($decision->reset_after_ns),
            \FFI::string(\FFI::cast('char *', \FFI::addr($decision)), \FFI::sizeof($decision)),
        );
    }
}
