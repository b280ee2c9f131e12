<?php

declare(strict_types=1);

namespace Tarry;

/** Thrown in a worker's function that has run for longer than the worker's timeout: its job is released. */
final class JobTimeout extends \RuntimeException
{
}
