<?php
// php -d zend.assertions=1 test.php: the tests. test.php take FILE KEY TIMES: takes single permits of a key, and prints how many it got.

declare(strict_types=1);

require __DIR__ . '/Tollbar.php';

use Tollbar\Error;
use Tollbar\Table;

const POLICY = '1000/day';

if (($argv[1] ?? '') === 'take') {
    $table = Table::open($argv[2], POLICY, 1000);
    $got = 0;
    for ($i = 0; $i < (int) $argv[4]; $i++) {
        $got += (int) $table->allow($argv[3]);
    }
    echo "$got\n";
    exit;
}

function same(mixed $got, mixed $want): void
{
    if ($got !== $want) {
        throw new \Exception(var_export($got, true) . '; expected ' . var_export($want, true));
    }
}

/** The message of the error that a call throws. */
function error(callable $call): string
{
    try {
        $call();
    } catch (Error $error) {
        return $error->getMessage();
    }
    throw new \Exception('no error');
}

$tests = [
    'three of five pass' => function (): void {
        $table = Table::shared('3/day', 1000);
        $decisions = array_map(fn () => $table->check('k'), range(1, 5));
        same(array_map(fn ($d) => $d->allowed, $decisions), [true, true, true, false, false]);
        same(array_map(fn ($d) => $d->remaining, $decisions), [2, 1, 0, 0, 0]);
        same($decisions[2]->retryAfter, 0.0);
        same($decisions[3]->retryAfter > 28_000 && $decisions[3]->retryAfter <= 28_800, true);
        same($decisions[3]->resetAfter > 86_000 && $decisions[3]->resetAfter <= 86_400, true);
        same($table->allow('other'), true);
    },
    'keys may have any bytes' => function (): void {
        $table = Table::shared('1/day', 1000);
        same([$table->allow("a\0b"), $table->allow("a\0c"), $table->allow("a\0b")], [true, true, false]);
    },
    'a cost, and a cost above the burst' => function (): void {
        $table = Table::shared('10/day', 1000);
        same([$table->allow('k', 7), $table->allow('k', 4), $table->allow('k', 3), $table->allow('k', 0)], [true, false, true, true]);
        same($table->check('k', 11)->retryAfter, INF);
    },
    'a peek takes nothing' => function (): void {
        $table = Table::shared('1/day', 1000);
        same([$table->peek('k')->allowed, $table->peek('k')->allowed, $table->allow('k'), $table->peek('k')->allowed], [true, true, true, false]);
    },
    'policies by number, and a ban' => function (): void {
        $table = Table::shared(['1/day', '2/day ban 2day'], 1000);
        same([$table->allow('k'), $table->allow('k')], [true, false]);
        same([$table->charge('k', 2, 1), $table->allow('k', 1, 1)], [0, false]);
        same($table->peek('k', 1, 1)->retryAfter > 172_000.0, true);
        same(str_contains(error(fn () => $table->allow('k', 1, 2)), 'policy'), true);
    },
    'charges and resets' => function (): void {
        $table = Table::shared('5/day', 1000);
        same([$table->charge('k', 3), $table->peek('k')->remaining], [0, 2]);
        same([$table->reset('k'), $table->peek('k')->remaining], [true, 5]);
        // With `ban` each reset takes another slot of the key's twelve.
        $resets = fn (Table $table) => array_map(fn () => $table->allow('k') && $table->reset('k'), range(1, 20));
        same($resets($table), array_fill(0, 20, true));
        $bans = $resets(Table::shared('5/day ban 1day', 1000));
        same([$bans[0], $bans[19]], [true, false]);
    },
    'header fields' => function (): void {
        $want = ['RateLimit-Policy' => '"visits";q=2;w=60', 'RateLimit' => '"visits";r=1;t=30'];
        // Again if a busy machine took a second, after which t is 29.
        for ($tries = 1; $tries <= 20; $tries++) {
            $began = hrtime(true);
            $table = Table::shared('2/min', 1000);
            $fields = fn () => $table->fields('visits', 'k', $table->check('k'));
            $first = $fields();
            if ($first === $want || hrtime(true) - $began < 1_000_000_000) {
                break;
            }
        }
        same($first, $want);
        $fields();
        same(array_keys($fields()), ['Retry-After', 'RateLimit-Policy', 'RateLimit']);
    },
    'errors say what is wrong' => function (): void {
        same(str_starts_with(error(fn () => Table::shared('5/mni', 1000)), 'policy "5/mni", column 3: expected a period'), true);
        same(str_contains(error(fn () => Table::shared([], 1000)), 'needs a policy'), true);
        same(str_contains(error(fn () => Table::shared('5/min', 0)), 'capacity'), true);
        same(str_contains(error(fn () => Table::open('/nonexistent/table', '5/min', 1000)), 'open'), true);
        $table = Table::shared('5/min', 1000);
        same(error(fn () => $table->allow('k', -1)), 'cost -1; expected 0 or more');
        $table->close();
        $table->close();
        same(error(fn () => $table->allow('k')), 'the table is closed');
    },
    'a file keeps the debts, and another capacity is refused' => function (): void {
        $path = sys_get_temp_dir() . '/tollbar-' . getmypid();
        try {
            Table::open($path, '2/day', 1000)->check('k');
            same(Table::open($path, '2/day', 1000)->peek('k')->remaining, 1);
            same(str_contains(error(fn () => Table::open($path, '2/day', 9999)), 'capacity'), true);
        } finally {
            unlink($path);
        }
    },
    'one address has one key' => function (): void {
        // B4: a host has all addresses of its /64, and a proxy may add a port.
        foreach ([
            ['192.0.2.1', '192.0.2.1:4711', '::ffff:192.0.2.1', ' [::ffff:192.0.2.1]:80', '64:ff9b::192.0.2.1'],
            ['2001:db8::1', '2001:db8::ffff', '[2001:db8::2]:443', '2001:db8::3%eth0'],
        ] as $addresses) {
            same(array_unique(array_map(Table::addressKey(...), $addresses)), [Table::addressKey($addresses[0])]);
        }
        same(Table::addressKey('192.0.2.1'), "\x04\x20\xc0\x00\x02\x01");
        same(Table::addressKey('2001:db8:1:2::', 32, 48), "\x06\x30\x20\x01\x0d\xb8\x00\x01");
        foreach (['', 'unix:', 'localhost', '192.0.2.1:x'] as $text) {
            same(error(fn () => Table::addressKey($text)), 'not a network address');
        }
        error(fn () => Table::addressKey('192.0.2.1', 33));
    },
    // M6: the cases of ffi-tests/c/policy_spec_test.c.
    'the most that a policy admits in a window' => function (): void {
        foreach ([
            ['120/min', 60.0, 239], ['120/min', 3600.0, 7319], ['120/min', 1e-9, 120], ['120/min', 0.0, 0],
            ['120/min algo sliding-window mode strict', 60.0, 120], ['10/day algo calendar', 25 * 3600.0, 30], ['0/s',
                1.0, 0],
        ] as [$policy, $window, $most]) {
            same([$policy, Table::worstCase($policy, $window)], [$policy, $most]);
        }
        same(Table::worstCase('1000000000/s', INF) === PHP_INT_MAX, true);
        same(str_starts_with(error(fn () => Table::worstCase('5/mni', 1.0)),
            'policy "5/mni", column 3: expected a period'), true);
        foreach ([-1.0, NAN] as $window) {
            same(str_contains(error(fn () => Table::worstCase('5/min', $window)), 'expected seconds, 0 or more'), true);
        }
    },
    'no value ends the process' => function (): void {
        // D1. Every call throws, or returns what it may.
        $table = Table::shared(['1000000/day', '5/min ban 1h'], 1000);
        $decision = $table->check('k');
        $values = [
            null, true, 0, 1, 2, -1, 0.5, NAN, INF, 1 << 31, 1 << 32, PHP_INT_MAX, PHP_INT_MIN, '', 'k', '5/min', "\0", str_repeat('x', 5000), '192.0.2.1',
            [], ['5/min'], [null], ['a' => '5/min', 'b' => '1/s'], [['5/min']], new \stdClass(), fn () => 0, $decision, new \DateTime(), \FFI::cdef()->new('int'),
            new \Tollbar\Decision(true, 1, 0.0, 0.0, 'x'), new \Tollbar\Decision(true, 1, 0.0, 0.0, str_repeat("\xff", 40)),
        ];
        $bare = (new \ReflectionClass(Table::class))->newInstanceWithoutConstructor();
        $calls = array_map(fn ($name) => fn (...$list) => $table->$name(...$list), ['allow', 'check', 'peek', 'charge', 'reset', 'fields']);
        array_push(
            $calls,
            fn ($policies, $capacity) => Table::shared($policies, is_int($capacity) && $capacity > 1_000_000 ? -1 : $capacity),
            fn ($path, $policies, $capacity) => Table::open(is_string($path) ? '/nonexistent/table' : $path, $policies, $capacity),
            Table::addressKey(...), Table::worstCase(...), fn () => clone $table, fn (...$list) => new Table(...$list), fn ($name) => unserialize(serialize($name)),
            fn (...$list) => $bare->allow(...$list), fn () => serialize($table), fn (...$list) => new \Tollbar\Decision(...$list),
        );
        mt_srand(1);
        $threw = 0;
        for ($round = 0; $round < 100_000; $round++) {
            $list = [];
            for ($left = mt_rand(0, 5); $left > 0; $left--) {
                $list[] = $values[mt_rand(0, count($values) - 1)];
            }
            try {
                $calls[mt_rand(0, count($calls) - 1)](...$list);
            } catch (\Throwable) {
                $threw++;
            }
        }
        same($threw > 10_000 && $threw < 99_000, true);
        same(Table::shared('1/day', 1000)->allow('k'), true);
    },
    // The struct's last field is the zone, so this reads all of the declared struct.
    'a calendar needs the wall clock' => function (): void {
        same(str_contains(error(fn () => Table::shared('10/month zone Europe/Berlin', 1000)), 'clock'), true);
    },
];

$failed = 0;
foreach ($tests as $name => $test) {
    try {
        $test();
    } catch (\Throwable $problem) {
        $failed++;
        echo "FAIL $name: {$problem->getMessage()} (line {$problem->getLine()})\n";
    }
}
echo count($tests) - $failed, " passed, $failed failed\n";
exit($failed === 0 ? 0 : 1);
