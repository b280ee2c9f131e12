<?php

declare(strict_types=1);

namespace Tarry;

/**
 * Monotonic time, in seconds.
 *
 * @internal
 */
final class Clock
{
    public static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
