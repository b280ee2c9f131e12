<?php

declare(strict_types=1);

namespace Tarry;

/** How connections to https addresses are made: what is wanted of the nodes' certificates, and this client's own. */
final class Tls
{
    /**
     * @param string|null $ca file with the certificates of authorities, as PEM; null: those of the system
     * @param string|null $cert file with this client's own certificate, as PEM
     * @param string|null $key file with the key of it; null: it is in $cert
     * @param string $passphrase of the key
     * @param bool $insecure accept any certificate: then others can read and change what is sent
     */
    public function __construct(
        public readonly ?string $ca = null,
        public readonly ?string $cert = null,
        public readonly ?string $key = null,
        public readonly string $passphrase = '',
        public readonly bool $insecure = false,
    ) {
        foreach (['ca' => $ca, 'cert' => $cert, 'key' => $key] as $name => $file) {
            if ($file !== null && !is_readable($file)) {
                throw new \InvalidArgumentException("$name: the file $file cannot be read");
            }
        }
    }

    /**
     * @internal
     * @return array<int, mixed> for curl
     */
    public function options(): array
    {
        $options = [CURLOPT_SSL_VERIFYPEER => !$this->insecure, CURLOPT_SSL_VERIFYHOST => $this->insecure ? 0 : 2];
        if ($this->ca !== null) {
            $options[CURLOPT_CAINFO] = $this->ca;
        }
        if ($this->cert !== null) {
            $options += [CURLOPT_SSLCERT => $this->cert, CURLOPT_SSLKEY => $this->key ?? $this->cert];
            $options += $this->passphrase === '' ? [] : [CURLOPT_KEYPASSWD => $this->passphrase];
        }
        return $options;
    }
}
