// The same program as visit.c, in Node. The third word is the binding's file.
'use strict';

const [binding, file, ...addresses] = process.argv.slice(2);
const { Table, addressKey } = require(binding);
const table = Table.open(file, '1/day', 10_000);
for (const address of addresses) {
    let key;
    try {
        key = addressKey(address);
    } catch {
        console.log('no address');
        continue;
    }
    console.log(table.allow(key) ? 'passes' : 'refused');
}
