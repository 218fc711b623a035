// tsc --strict compiles this program, and runs nothing. Each line below an expected error has one, or tsc fails.
import { Table, TollbarError, addressKey, clientKey, worstCase } from './tollbar.js';
import type { Decision, Signal } from './tollbar.js';

export async function visit(table: Table, request: { socket: { remoteAddress?: string }; headers: Record<string, string | string[] | undefined> }, signal: Signal): Promise<number> {
    const client: Uint8Array | undefined = clientKey(request, ['10.0.0.0/8', 'unix:']);
    const decision: Decision = await table.wait(client, { cost: 2, policy: 1, timeout: 0.5, signal });
    const headers: Record<string, string> = table.fields('visits', client, decision, { cost: 2 });
    return decision.allowed && table.allow('key') && table.reset(null) ? decision.remaining : Number(headers['Retry-After']);
}

export function make(): Table {
    try {
        return Table.open('/run/app/visits', ['3/min', '100/day'] as const, 100_000);
    } catch (problem) {
        if (problem instanceof TollbarError && problem.code === 'TOLLBAR_E_OTHER_POLICIES') return Table.private('3/min', problem.errno);
        throw problem;
    }
}

export const most: number = worstCase('3/min', 60) + make().charge(addressKey('192.0.2.1', { ipv6Bits: 48 }));

// @ts-expect-error
new Table('3/min', 100);
// @ts-expect-error
Table.private('3/min');
// @ts-expect-error
make().check('key', 2);
// @ts-expect-error
make().check('key', { cots: 2 });
// @ts-expect-error
make().check(7);
// @ts-expect-error
make().peek('key').allowed = true;
// @ts-expect-error
make().fields('visits', 'key', { allowed: true });
