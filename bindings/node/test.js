// node test.js: the tests. test.js take FILE KEY TIMES: takes single permits of a key, and prints how many it got.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Table, TollbarError } = require('./tollbar.js');

const POLICY = '1000/day';

if (process.argv[2] === 'take') {
    const [file, key, times] = process.argv.slice(3);
    const table = Table.open(file, POLICY, 1000);
    let got = 0;
    for (let i = 0; i < Number(times); i++) got += table.allow(key);
    console.log(got);
    process.exit();
}

const tests = {
    'three of five pass'() {
        const table = Table.private('3/day', 1000);
        const decisions = [1, 2, 3, 4, 5].map(() => table.check('k'));
        assert.deepEqual(decisions.map((d) => d.allowed), [true, true, true, false, false]);
        assert.deepEqual(decisions.map((d) => d.remaining), [2, 1, 0, 0, 0]);
        assert.equal(decisions[2].retryAfter, 0);
        assert.ok(decisions[3].retryAfter > 28_000 && decisions[3].retryAfter <= 28_800);
        assert.ok(decisions[3].resetAfter > 86_000 && decisions[3].resetAfter <= 86_400);
        assert.equal(table.allow('other'), true);
    },
    'keys may have any bytes'() {
        const table = Table.private('1/day', 1000);
        assert.deepEqual([table.allow('a\0b'), table.allow(Buffer.from('a\0c')), table.allow(Buffer.from('a\0b'))], [true, true, false]);
        assert.equal(table.allow(new Uint8Array([1, 2])), true);
        assert.throws(() => table.allow(7), { message: 'number as a key; expected a string or bytes' });
    },
    'a cost, and a cost above the burst'() {
        const table = Table.private('10/day', 1000);
        assert.deepEqual([table.allow('k', 7), table.allow('k', 4), table.allow('k', 3), table.allow('k', 0)], [true, false, true, true]);
        assert.equal(table.check('k', 11).retryAfter, Infinity);
    },
    'a peek takes nothing'() {
        const table = Table.private('1/day', 1000);
        assert.deepEqual([table.peek('k').allowed, table.peek('k').allowed, table.allow('k'), table.peek('k').allowed], [true, true, true, false]);
    },
    'policies by number, and a ban'() {
        const table = Table.private(['1/day', '2/day ban 2day'], 1000);
        assert.deepEqual([table.allow('k'), table.allow('k')], [true, false]);
        assert.deepEqual([table.charge('k', 2, 1), table.allow('k', 1, 1)], [0, false]);
        assert.ok(table.peek('k', 1, 1).retryAfter > 172_000);
        assert.throws(() => table.allow('k', 1, 2), TollbarError);
    },
    'charges and resets'() {
        const table = Table.private('5/day', 1000);
        assert.deepEqual([table.charge('k', 3), table.peek('k').remaining], [0, 2]);
        assert.deepEqual([table.reset('k'), table.peek('k').remaining], [true, 5]);
        // With `ban` each reset takes another slot of the key's twelve.
        const resets = (table) => Array.from({ length: 20 }, () => table.allow('k') && table.reset('k'));
        assert.ok(resets(table).every((reset) => reset));
        const ofBans = resets(Table.private('5/day ban 1day', 1000));
        assert.deepEqual([ofBans[0], ofBans[19]], [true, false]);
    },
    'header fields'() {
        const table = Table.private('2/min', 1000);
        const fields = () => table.fields('visits', 'k', table.check('k'));
        assert.deepEqual(fields(), { 'RateLimit-Policy': '"visits";q=2;w=60', RateLimit: '"visits";r=1;t=30' });
        fields();
        assert.deepEqual(Object.keys(fields()), ['Retry-After', 'RateLimit-Policy', 'RateLimit']);
    },
    'errors say what is wrong'() {
        assert.throws(() => Table.private('5/mni', 1000), { name: 'TollbarError', message: /^policy "5\/mni", column 3: expected a period/ });
        assert.throws(() => Table.private([], 1000), { message: /no policy/ });
        for (const capacity of [0, -1, 1.5, '10', undefined]) assert.throws(() => Table.private('5/min', capacity), { message: /capacity/ });
        assert.throws(() => Table.open('/nonexistent/table', '5/min', 1000), { message: /open/ });
        const table = Table.private('5/min', 1000);
        for (const cost of [-1, 0.5, NaN, '1']) assert.throws(() => table.allow('k', cost), { message: `cost ${cost}; expected a whole number, 0 or more` });
        table.close();
        table.close();
        assert.throws(() => table.allow('k'), { message: 'the table is closed' });
    },
    'a file keeps the debts, and another capacity is refused'() {
        const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tollbar-'));
        const file = path.join(directory, 'table');
        try {
            Table.open(file, '2/day', 1000).check('k');
            assert.equal(Table.open(file, '2/day', 1000).peek('k').remaining, 1);
            assert.throws(() => Table.open(file, '2/day', 9999), { message: /capacity/ });
        } finally {
            fs.rmSync(directory, { recursive: true });
        }
    },
    'a calendar needs the wall clock'() {
        assert.throws(() => Table.private('10/month zone Europe/Berlin', 1000), { message: /clock/ });
    },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
    try {
        test();
    } catch (problem) {
        failed++;
        console.log(`FAIL ${name}: ${problem.stack}`);
    }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
