// The driver of the conformance cases: clients/conformance/README.md says what it does.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { BuryError, Client, TarryError, Worker } from "tarry";

/** Names of the HTTP API to those of the client, and back; bodies and headers are nobody's. */
const camel = (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase());
const snake = (name) => name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());
const instants = new Set(["due_at", "expires_at", "due_from", "due_to", "died_from", "died_to", "until", "start", "end", "after"]);

function toClient(value, name) {
  if (Array.isArray(value)) {
    return value.map((element) => toClient(element));
  }
  if (instants.has(name) && typeof value === "string" && value !== "never") {
    return new Date(value);
  }
  if (value === null || typeof value !== "object" || name === "body" || name === "headers") {
    return value;
  }
  const { body_base64: base64, ...members } = value;
  const made = Object.entries(members).map(([name, member]) => [renamedArguments[name] ?? camel(name), toClient(member, name)]);
  if (base64 !== undefined) {
    made.push(["body", Buffer.from(base64, "base64")]);
  }
  return Object.fromEntries(made);
}

function fromClient(value, name) {
  if (value instanceof TarryError) {
    const { code, outcome, message, field } = value;
    return { code, outcome, message, field };
  }
  if (Array.isArray(value)) {
    return value.map((element) => fromClient(element));
  }
  if (value === null || typeof value !== "object" || value instanceof Date || name === "body" || name === "headers") {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === "body" && member instanceof Uint8Array
        ? ["body_base64", Buffer.from(member).toString("base64")]
        : [snake(name), fromClient(member, name)],
    ),
  );
}

const tlsOptions = ({ ca, cert, key, insecure }) => ({
  ca: ca && readFileSync(ca),
  cert: cert && readFileSync(cert),
  key: key && readFileSync(key),
  rejectUnauthorized: !insecure,
});

/** @type {Client} */
let client;
let stream;
let awaited; // the next job of the stream, once it was asked for

function closeStream() {
  stream?.return();
  stream = awaited = undefined;
}

// Calls and arguments that have another name here.
const renamedCalls = { jobs: "list", whoami: "whoAmI" };
const renamedArguments = { page: "max" };

/** The names of a function's parameters; one that is taken apart is "{". */
function parameters(method) {
  const [, list] = String(method).match(/^[^(]*\(([^{)]*\{?)/);
  return list.split(",").map((name) => name.trim()).filter(Boolean);
}

// Parameters that are an object of all arguments that no other parameter takes, unless there is an argument of the name.
const wholes = new Set(["job", "request", "changes", "filter", "token", "namespace", "{"]);

/** The arguments of a method in its order. */
function positional(method, { deadline, ...given }) {
  const take = (name) => {
    const value = given[name];
    delete given[name];
    return value;
  };
  const refs = (list) => list.map(({ id, token }) => ({ id, token }));
  const special = {
    ref: () => ({ id: take("id"), token: take("token") }),
    refs: () => refs(take("jobs") ?? take("finish")),
    updates: () => take("jobs"),
    options: () => ({ deadline }),
  };
  const names = parameters(method);
  const made = names.map((name) => (special[name] ?? (() => take(name)))());
  names.forEach((name, i) => {
    if (made[i] === undefined && wholes.has(name)) {
      made[i] = name === "{" ? { ...given, deadline } : given;
      given = {};
    }
  });
  return made;
}

async function call(name, args) {
  const method = client[renamedCalls[name] ?? camel(name)];
  if (typeof method !== "function") {
    throw new TarryError(name, { code: "unknown_call" });
  }
  const result = await method.apply(client, positional(method, args));
  if (typeof result?.[Symbol.asyncIterator] !== "function") {
    return result;
  }
  const list = [];
  for await (const element of result) {
    list.push(element);
  }
  return list;
}

// What is not one method of the client.
const own = {
  open({ addresses, tls, ...options }) {
    closeStream();
    try {
      client = new Client(addresses, { ...options, tls: tls && tlsOptions(tls) });
    } catch (cause) {
      if (cause instanceof TypeError) {
        throw new TarryError(cause.message, { code: "invalid_argument", cause });
      }
      throw cause;
    }
  },
  stream_open(request) {
    closeStream();
    stream = client.stream(request);
  },
  async stream_next({ deadline }) {
    awaited ??= stream.next();
    const late = deadline === undefined ? [] : [sleep(deadline * 1000, { late: true }, { ref: false })];
    const next = await Promise.race([awaited, ...late]);
    if (next.late) {
      return { timeout: true };
    }
    awaited = undefined;
    return next.done ? { end: true } : { job: next.value };
  },
  stream_close: () => closeStream(),
};

async function answer({ call: name, args }) {
  try {
    const given = toClient(args ?? {});
    const result = await (Object.hasOwn(own, name) ? own[name](given) : call(name, given));
    return { ok: fromClient(result ?? null) };
  } catch (error) {
    if (error instanceof TarryError) {
      const { code, outcome, message, field } = error;
      return { error: { code, outcome, message, field } };
    }
    return { error: { code: "driver", message: error?.stack ?? String(error) } };
  }
}

const write = (value) => process.stdout.write(JSON.stringify(value) + "\n");

async function drive() {
  for await (const line of createInterface({ input: process.stdin })) {
    write(await answer(JSON.parse(line)));
  }
  closeStream();
}

async function work({ addresses, topic, ...options }) {
  const worker = new Worker(
    new Client(addresses),
    topic,
    async ({ id, attempts, body }, { signal }) => {
      write({ event: "start", id, attempts });
      await sleep((body.work ?? 0) * 1000, undefined, { signal });
      write({ event: "end", id });
      if (body.fail !== undefined) {
        throw new Error(body.fail);
      }
      if (body.bury !== undefined) {
        throw new BuryError(body.bury);
      }
    },
    options,
  );
  const stopped = worker.run();
  write({ event: "ready" });
  await stopped;
  write({ event: "stopped" });
}

await (process.argv[2] === "worker" ? work(JSON.parse(process.argv[3])) : drive());
