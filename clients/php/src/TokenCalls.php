<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on the tokens of a cluster.
 *
 * @internal
 */
trait TokenCalls
{
    /**
     * Who the client is for the cluster, and what it may do.
     *
     * @return array{mode: string, id?: string, rules: list<array{topics: list<string>, verbs: list<string>}>, id_prefix?: string, expires_at?: string}
     */
    public function whoAmI(): array
    {
        return $this->read('/v1/whoami', ['mode' => '', 'rules' => [Shape::RULE]]);
    }

    /**
     * The tokens by id, without their texts, page by page while they are read.
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function tokens(string $after = '', int $page = 1000): \Generator
    {
        return $this->pages('/v1/tokens', 'tokens', Shape::TOKEN, 'cursor', $after, $page);
    }

    /**
     * A token, without its text.
     *
     * @return array<string, mixed>
     */
    public function token(string $id): array
    {
        return $this->read(self::path('/v1/tokens/', $id, ''), Shape::TOKEN);
    }

    /**
     * Makes a token, whose text is in the member token of the result, or changes what one may do. It is not repeated
     * when its outcome is unknown, because the text would be lost.
     *
     * @param list<array{topics: list<string>, verbs: list<string>}> $rules as in docs/tokens.md
     * @return array{id: string, revision: int, token?: string}
     */
    public function putToken(
        string $id,
        array $rules,
        ?string $description = null,
        ?string $idPrefix = null,
        ?\DateTimeInterface $expiresAt = null,
        ?int $ifRevision = null,
    ): array {
        $in = self::given(['rules' => $rules, 'description' => $description, 'id_prefix' => $idPrefix, 'expires_at' => Json::time($expiresAt)]);
        $path = self::path('/v1/tokens/', $id, '') . self::query(['if_revision' => $ifRevision]);
        return $this->call(new Request('PUT', $path, $in, gives: Shape::TOKEN_PUT));
    }

    /**
     * Gives a token a new text, which is in the result. The one before is accepted for $overlap more seconds; null: an hour.
     *
     * @return array{id: string, revision: int, token: string}
     */
    public function rotateToken(string $id, ?float $overlap = null): array
    {
        $gives = Shape::TOKEN_PUT + ['token' => ''];
        return $this->post(self::path('/v1/tokens/', $id, 'rotate'), self::given(['overlap' => $overlap]), false, $gives);
    }

    /** Revokes a token at once and for good. */
    public function deleteToken(string $id): void
    {
        $this->end(new Request('DELETE', self::path('/v1/tokens/', $id, ''), null, true));
    }
}
