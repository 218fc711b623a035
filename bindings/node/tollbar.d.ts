// Limits by key for Node, in memory that processes share. tollbar.js says what each call does.

/** Bytes, or a string, whose bytes in UTF-8 are the key. Undefined and null are a request without a key, which is refused. */
export type Key = string | Uint8Array | null | undefined;

/** What a table decided about one request. */
export interface Decision {
    /** Whether the request may pass. */
    readonly allowed: boolean;
    /** Permits left. */
    readonly remaining: number;
    /** Seconds until the request could pass; Infinity if it never can. */
    readonly retryAfter: number;
    /** Seconds until the key is as good as fresh; Infinity if it never is. */
    readonly resetAfter: number;
    /** Why, in a few words, such as 'over the rate'. */
    readonly reason: string;
}

export interface PolicyOptions {
    /** The policy's number in the list of policies; 0 if not given. */
    readonly policy?: number | undefined;
}

export interface PermitOptions extends PolicyOptions {
    /** The number of permits; 1 if not given. */
    readonly cost?: number | undefined;
}

/** An AbortSignal, as far as a wait needs one. */
export interface Signal {
    readonly aborted: boolean;
    readonly reason: any;
    addEventListener(type: 'abort', listener: () => void): void;
    removeEventListener(type: 'abort', listener: () => void): void;
}

export interface WaitOptions extends PermitOptions {
    /** The longest wait in seconds; without it the caller waits until its permits come. */
    readonly timeout?: number | undefined;
    /** Ends the wait, and gives the permits to the next caller. */
    readonly signal?: Signal | undefined;
}

export interface AddressOptions {
    /** Bits of an IPv4 address; 32 if not given. */
    readonly ipv4Bits?: number | undefined;
    /** Bits of an IPv6 address; 64 if not given. */
    readonly ipv6Bits?: number | undefined;
}

/** An http.IncomingMessage, as far as clientKey needs one. */
export interface ClientRequest {
    readonly socket: { readonly remoteAddress?: string | undefined };
    readonly headers: { readonly 'x-forwarded-for'?: string | string[] | undefined };
}

/** Limits by key. */
export class Table {
    private constructor();

    /** Opens the table in a file, or makes the file. */
    static open(path: string, policies: string | readonly string[], capacity: number): Table;
    /** A table in this process's own memory. */
    static private(policies: string | readonly string[], capacity: number): Table;

    /** Takes permits of a key. Returns whether the request may pass. */
    allow(key: Key, options?: PermitOptions): boolean;
    /** Takes permits of a key. */
    check(key: Key, options?: PermitOptions): Decision;
    /** Says what check would say, and takes nothing. */
    peek(key: Key, options?: PermitOptions): Decision;
    /** Takes permits of a key, and waits for them. Callers of a key get their permits in the order in which they called. */
    wait(key: Key, options?: WaitOptions): Promise<Decision>;
    /** Charges a key without asking. Returns the permits that could not be charged. */
    charge(key: Key, options?: PermitOptions): number;
    /** Lets a key begin again. Returns false and changes nothing if no slot is left. */
    reset(key: Key, options?: PolicyOptions): boolean;
    /** Retry-After of a refusal, RateLimit-Policy and RateLimit. */
    fields(name: string, key: Key, decision: Decision, options?: PermitOptions): Record<string, string>;
    /** Unmaps the table. Later calls throw. */
    close(): void;
}

/** The call failed. */
export class TollbarError extends Error {
    constructor(message: string, errno?: number);
    readonly name: 'TollbarError';
    /** The name of the library's error, such as 'TOLLBAR_E_SYNTAX', or 'ERR_INVALID_ARG_VALUE'. */
    readonly code: string;
    /** The number of the library's error, or 0. */
    readonly errno: number;
}

/** The key of an address in text. Throws a TollbarError for a text that is no address. */
export function addressKey(address: string, options?: AddressOptions): Uint8Array;
/** The key of the client that sent a request, behind proxies with the networks `proxies`. */
export function clientKey(request: ClientRequest, proxies?: string | readonly string[]): Uint8Array | undefined;
/** The most permits of one key that a policy admits in some window of so many seconds. */
export function worstCase(policy: string, seconds: number): number;
