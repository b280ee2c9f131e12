<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on namespaces (docs/namespaces.md).
 *
 * @internal
 */
trait NamespaceCalls
{
    /**
     * The namespaces that the client may see, by name, with what they hold.
     *
     * @return list<array<string, mixed>>
     */
    public function namespaces(): array
    {
        return $this->read('/v1/namespaces', ['namespaces' => [Shape::NAMESPACE]])['namespaces'];
    }

    /**
     * A namespace: its prefixes, its quotas, and in the member use what it holds.
     *
     * @return array<string, mixed>
     */
    public function namespace(string $name): array
    {
        return $this->read(self::path('/v1/namespaces/', $name, ''), Shape::NAMESPACE);
    }

    /**
     * Makes or replaces a namespace. Quotas that are not given do not bound it.
     *
     * @param array{jobs?: int, bytes?: int, topics?: int, rate?: float} $quotas
     * @return array{name: string, revision: int, existing: bool}
     */
    public function putNamespace(
        string $name,
        string $topicPrefix,
        ?string $idPrefix = null,
        ?string $description = null,
        array $quotas = [],
        ?int $ifRevision = null,
    ): array {
        $in = self::given([
            'topic_prefix' => $topicPrefix,
            'id_prefix' => $idPrefix,
            'description' => $description,
            'quotas' => $quotas === [] ? null : $quotas,
        ]);
        $path = self::path('/v1/namespaces/', $name, '') . self::query(['if_revision' => $ifRevision]);
        // One that was put already is no other, whatever its revision.
        return $this->call(new Request('PUT', $path, $in, true, gives: Shape::NAMESPACE_PUT));
    }

    /** Removes a namespace. Its topics and jobs stay. */
    public function deleteNamespace(string $name): void
    {
        $this->end(new Request('DELETE', self::path('/v1/namespaces/', $name, ''), null, true));
    }
}
