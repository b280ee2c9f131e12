import { TarryError } from "./error.js";

// The HTTP API's names and values, and those of this package: members are camelCase
// instead of snake_case, instants are Dates, bodies that are not text are bytes.
// Durations are seconds on both sides.

const isInstant = /(_at|_until)$|^(at|until|start|end|majority)$/;

/** @param {string} name */
const snake = (name) => name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());

/** @param {string} name */
const camel = (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase());

/**
 * What is sent for a value. JSON.stringify then writes Dates as RFC 3339 and leaves out
 * members that are undefined.
 *
 * @param {any} value
 * @param {string} [name] of the member
 * @returns {any}
 */
export function toWire(value, name = "") {
  if (Array.isArray(value)) {
    return value.map((member) => toWire(member, name));
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw noValue(name, `a finite number, not ${value}`); // JSON would have null for it: no delay, for one
  }
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    throw noValue(name, "a valid Date");
  }
  if (value === null || typeof value !== "object" || value instanceof Date) {
    return value;
  }
  /** @type {Record<string, any>} */
  const wire = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === "body" && member instanceof Uint8Array) {
      wire.body_base64 = Buffer.from(member.buffer, member.byteOffset, member.byteLength).toString("base64");
    } else if (name === "body" || name === "headers") {
      wire[name] = member; // the caller's own
    } else {
      wire[snake(name)] = toWire(member, name);
    }
  }
  return wire;
}

/** @param {string} name @param {string} wanted */
const noValue = (name, wanted) =>
  new TarryError(`${name}: give ${wanted}`, { code: "invalid_argument", field: snake(name) });

/**
 * What a part of a response is for the caller.
 *
 * @param {any} wire
 * @returns {any}
 */
export function fromWire(wire) {
  if (Array.isArray(wire)) {
    return wire.map(fromWire);
  }
  if (wire === null || typeof wire !== "object") {
    return wire;
  }
  /** @type {Record<string, any>} */
  const value = {};
  for (const [name, member] of Object.entries(wire)) {
    if (name === "body" || name === "headers") {
      value[name] = member;
    } else if (name === "body_base64") {
      value.body = new Uint8Array(Buffer.from(member, "base64"));
    } else if (isInstant.test(name) && typeof member === "string") {
      value[camel(name)] = new Date(member);
    } else if (name !== "success") {
      value[camel(name)] = fromWire(member);
    }
  }
  return value;
}

/**
 * A path of the API; names in it are escaped, also those that mean this or the upper folder.
 *
 * @param {TemplateStringsArray} parts
 * @param {...string} names
 */
export function path(parts, ...names) {
  const escaped = names.map((name) => {
    if (typeof name !== "string" || name === "") {
      throw new TarryError("an id or a name is missing", { code: "invalid_argument" });
    }
    return name === "." || name === ".." ? name.replaceAll(".", "%2E") : encodeURIComponent(name);
  });
  return String.raw({ raw: parts }, ...escaped);
}

/**
 * A query string of the parameters that are set.
 *
 * @param {Record<string, any>} parameters
 * @param {Record<string, string>} [headers] of jobs
 */
export function query(parameters, headers = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    toWire(value, name);
    if (value instanceof Date) {
      query.set(snake(name), value.toISOString());
    } else if (value !== undefined && value !== false) {
      query.set(snake(name), String(value)); // of a list: its elements, separated by commas
    }
  }
  for (const [name, value] of Object.entries(headers)) {
    query.set("header." + name, value);
  }
  const text = query.toString();
  return text && "?" + text;
}
