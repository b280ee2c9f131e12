<?php

declare(strict_types=1);

namespace Tarry;

/** Thrown by the function of a worker: its job cannot be done, and is set aside for people to see. */
final class Bury extends \RuntimeException
{
}
