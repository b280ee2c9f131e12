import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";

import { TarryError, Unsent } from "./error.js";

// For how long, in ms, a connection is tried to be made.
const connectTime = 3_000;

// A connection that was idle for so long, in ms, is closed. A node closes it after five minutes.
const idleTime = 60_000;

// Idle connections that are kept for each node.
const maxIdle = 64;

// Statuses of responses without a body.
const bodiless = new Set([204, 205, 304]);

/** @typedef {(node: string, path: string, init: {method: string, body?: string, headers: Record<string, string>, signal: AbortSignal}) => Promise<Response>} Send */

/**
 * Sends requests as fetch does. Unlike fetch it sends any path as it is, takes certificates, and knows whether
 * something was sent: it throws Unsent if not.
 *
 * @param {import("tarry").ClientOptions["tls"]} [tls]
 * @returns {Send}
 */
export function sender(tls) {
  const keep = { keepAlive: true, maxFreeSockets: maxIdle, timeout: idleTime };
  const plain = new http.Agent(keep);
  const secure = new https.Agent({ ...keep, ...tls });
  return (node, path, { method, body, headers, signal }) =>
    new Promise((resolve, reject) => {
      const over = node.startsWith("https:");
      const request = (over ? https : http).request(node, { method, path, headers, signal, agent: over ? secure : plain });
      let connected = false;
      const late = setTimeout(() => request.destroy(new Error(`no connection in ${connectTime / 1000} s`)), connectTime);
      request.on("socket", (socket) => {
        const done = () => {
          connected = true;
          clearTimeout(late);
        };
        if (request.reusedSocket) {
          done();
        } else {
          socket.once(over ? "secureConnect" : "connect", done);
        }
      });
      request.on("error", (cause) => {
        clearTimeout(late);
        reject(connected ? cause : new Unsent(cause));
      });
      request.on("response", (message) => {
        try {
          resolve(responseOf(message));
        } catch (cause) {
          request.destroy(); // its status is none
          reject(cause);
        }
      });
      request.end(body);
    });
}

/**
 * Sends requests with the caller's own fetch.
 *
 * @param {typeof globalThis.fetch} fetch
 * @returns {Send}
 */
export const fetcher = (fetch) => async (node, path, init) => {
  if (dots.test(path)) {
    throw new TarryError("an id or a name that is . or .. cannot be sent by fetch", { code: "invalid_argument" });
  }
  return fetch(node + path, { ...init, redirect: "manual" });
};

// Of a path, a segment that fetch takes for this or the upper folder, although it is escaped.
const dots = /\/(%2E){1,2}(\/|\?|$)/;

/** @param {any} message */
function responseOf(message) {
  const status = message.statusCode;
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    headers.set(name, String(value));
  }
  if (bodiless.has(status)) {
    message.resume();
    return new Response(null, { status, headers });
  }
  return new Response(Readable.toWeb(message), { status, headers });
}

