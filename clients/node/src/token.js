import { closeSync, openSync, readSync, statSync } from "node:fs";
import { BlockList, isIP } from "node:net";

import { TarryError } from "./error.js";

// Far more bytes than a token has.
const maxFile = 4 << 10;

const thisMachine = new BlockList();
thisMachine.addSubnet("127.0.0.0", 8, "ipv4");
thisMachine.addAddress("::1", "ipv6");

/** The token that calls send, perhaps of a file. Its text is private, so that nothing that is printed has it. */
export class Token {
  #text = "";
  #path;
  #overHttp;
  #version = ""; // of the file that was read

  /** @param {import("tarry").ClientOptions} options */
  constructor({ token, tokenFile, tokenOverHttp = false }) {
    if (token !== undefined && tokenFile !== undefined) {
      throw new TypeError("give token or tokenFile, not both");
    }
    this.#path = tokenFile;
    this.#overHttp = tokenOverHttp;
    if (token !== undefined) {
      this.#text = checked(token.trim(), "token");
    }
    this.#read();
  }

  /**
   * Reports whether calls may go to a node. Whoever reads the network has a token that is sent without TLS.
   *
   * @param {string} node its base URL
   */
  usable(node) {
    return !this.#text || this.#overHttp || node.startsWith("https:") || isLoopback(node);
  }

  /**
   * The headers of the next request that are about the token.
   *
   * @returns {Record<string, string>}
   */
  headers() {
    try {
      this.#read();
    } catch (cause) {
      throw new TarryError(`the request is not sent: ${/** @type {Error} */ (cause).message}`, { code: "invalid_argument", cause });
    }
    return this.#text ? { Authorization: `Bearer ${this.#text}` } : {};
  }

  /** Reads the file if it has changed. */
  #read() {
    if (this.#path === undefined) {
      return;
    }
    const { ino, mtimeNs, size } = statSync(this.#path, { bigint: true });
    const version = `${ino} ${mtimeNs} ${size}`;
    if (version !== this.#version) {
      this.#text = checked(readSmall(this.#path).trim(), `tokenFile: ${this.#path}`);
      this.#version = version;
    }
  }
}

/** @param {string | URL} path */
function readSmall(path) {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(maxFile);
    return bytes.toString("latin1", 0, readSync(file, bytes));
  } finally {
    closeSync(file);
  }
}

/**
 * Gives the text if it can be in a header. A message never repeats it.
 *
 * @param {string} text
 * @param {string} where
 */
function checked(text, where) {
  if (!text) {
    throw new TypeError(`${where}: the token is empty`);
  }
  if (!/^[!-~]+$/.test(text)) {
    throw new TypeError(`${where}: the token is not one word of ASCII`);
  }
  return text;
}

/** @param {string} node */
function isLoopback(node) {
  const host = new URL(node).hostname.replace(/^\[|\]$/g, "");
  const family = isIP(host);
  return host === "localhost" || (family !== 0 && thisMachine.check(host, family === 4 ? "ipv4" : "ipv6"));
}
