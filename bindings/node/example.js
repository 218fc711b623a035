// A server of four processes, with one limit for all of them: each address may come three times a minute.
//
//     PORT=8080 node bindings/node/example.js
'use strict';

const cluster = require('node:cluster');
const http = require('node:http');
const { Table, clientKey } = require('./tollbar.js');

if (cluster.isPrimary) {
    for (let i = 0; i < 4; i++) cluster.fork();
    // The processes of the server end together.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit());
} else {
    const visits = Table.open(process.env.VISITS || '/dev/shm/visits', '3/min', 100_000);
    http.createServer((request, response) => {
        const client = clientKey(request);
        const decision = visits.check(client);
        response.writeHead(decision.allowed ? 200 : 429, visits.fields('visits', client, decision));
        response.end(decision.allowed ? 'welcome\n' : 'too many requests\n');
    }).listen(Number(process.env.PORT || 8080), '127.0.0.1');
}
