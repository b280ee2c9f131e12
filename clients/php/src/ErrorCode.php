<?php

declare(strict_types=1);

namespace Tarry;

/** Codes of TarryException that callers commonly tell apart. */
final class ErrorCode
{
    public const NOT_FOUND = 'not_found';
    public const ID_CONFLICT = 'id_conflict';
    public const STALE_TOKEN = 'stale_token';
    public const TOKEN_REQUIRED = 'token_required';
    public const NOT_RESERVED = 'not_reserved';
    public const ALREADY_RESERVED = 'already_reserved';
    public const ALREADY_DEAD = 'already_dead';
    public const NOT_KICKABLE = 'not_kickable';
    public const CONDITION_FAILED = 'condition_failed';
    public const INVALID_ARGUMENT = 'invalid_argument';
    /** The call needs a token that is known. */
    public const UNAUTHORIZED = 'unauthorized';
    /** No rule of the token allows the call. */
    public const FORBIDDEN = 'forbidden';
    public const BAD_JSON = 'bad_json';
    /** Try again later, or not: a call does not do so itself. */
    public const TOPIC_FULL = 'topic_full';
    /** Nothing was done: no leader, or no node could be reached. */
    public const NOT_APPLIED = 'not_applied';
    public const OVERLOADED = 'overloaded';
    /** A limit of the token on the node. */
    public const RATE_LIMITED = 'rate_limited';
    public const DISK_LOW = 'disk_low';
    /** Jobs of a listing by header may be missing, because its index is being built. */
    public const INCOMPLETE = 'incomplete';
    /** One job of several had no room in a reply; getBatch() asks for it again. */
    public const REPLY_FULL = 'reply_full';
    public const INTERNAL = 'internal';
    /** The call may have been done. */
    public const UNKNOWN = 'unknown';
}
