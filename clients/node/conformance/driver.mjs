// The driver of the conformance cases: clients/conformance/README.md says what it does.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { BuryError, Client, TarryError, Worker } from "tarry";

/** Names of the HTTP API to those of the client, and back; bodies and headers are nobody's. */
const camel = (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase());
const snake = (name) => name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());
const instants = new Set(["due_at", "expires_at", "due_from", "due_to", "died_from", "died_to", "until", "start", "end"]);

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
  const made = Object.entries(members).map(([name, member]) => [camel(name), toClient(member, name)]);
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

const all = async (iterator) => {
  const list = [];
  for await (const element of iterator) {
    list.push(element);
  }
  return list;
};

// What each verb calls: arguments with the client's names, and the options of the call.
const verbs = {
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
  add: (job, o) => client.add(job, o),
  add_batch: async ({ jobs }, o) => ({ results: await client.addBatch(jobs, o) }),
  add_all: async ({ jobs }, o) => ({ results: await client.addAll(jobs, o) }),
  get: ({ id }, o) => client.get(id, o),
  get_batch: async ({ ids, body }, o) => ({ results: await client.getBatch(ids, { body, ...o }) }),
  history: ({ id }, o) => client.history(id, o),
  update: ({ id, ...changes }, o) => client.update(id, changes, o),
  delete: ({ id, token, ifRevision, ifState }, o) => client.delete({ id, token }, { ifRevision, ifState, ...o }),
  reserve: async (request, o) => ({ jobs: await client.reserve(request, o) }),
  finish_and_reserve: async ({ finish, ...request }, o) => {
    const { jobs, finished } = await client.finishAndReserve(finish.map(({ id, token }) => ({ id, token })), request, o);
    return { jobs, finished: finished.map((error) => error ?? {}) };
  },
  finish: ({ id, token }, o) => client.finish({ id, token }, o),
  delete_batch: async ({ jobs }, o) => ({
    results: (await client.deleteBatch(jobs.map(({ id, token }) => ({ id, token })), o)).map((error) => error ?? {}),
  }),
  kick_batch: async ({ ids }, o) => ({ results: await client.kickBatch(ids, o) }),
  update_batch: async ({ jobs }, o) => ({ results: await client.updateBatch(jobs, o) }),
  finish_batch: async ({ jobs }, o) => ({
    results: (await client.finishBatch(jobs.map(({ id, token }) => ({ id, token })), o)).map((error) => error ?? {}),
  }),
  finish_then: async ({ id, token, then }, o) => ({ results: await client.finishThen({ id, token }, then, o) }),
  touch: ({ id, token, ttr }, o) => client.touch({ id, token }, { ttr, ...o }),
  release: ({ id, token, ...how }, o) => client.release({ id, token }, { ...how, ...o }),
  bury: ({ id, token, ...how }, o) => client.bury({ id, token }, { ...how, ...o }),
  kick: ({ id, ...how }, o) => client.kick(id, { ...how, ...o }),
  move: ({ id, token, to }, o) => client.move({ id, token }, to, o),
  explain: ({ id }, o) => client.explain(id, o),
  delete_jobs: ({ found }, o) => client.deleteJobs(found, o),
  update_jobs: ({ found, changes }, o) => client.updateJobs(found, changes, o),
  kick_jobs: ({ found, toTopic }, o) => client.kickJobs(found, { toTopic, ...o }),
  list: async (request, o) => ({ jobs: await all(client.list(request, o)) }),
  kick_topic: ({ topic, ...how }, o) => client.kickTopic(topic, { ...how, ...o }),
  purge: ({ topic, state, ...how }, o) => client.purge(topic, state, { ...how, ...o }),
  move_topic: ({ topic, to, states, filter, max, cursor }, o) => client.moveTopic(topic, to, { states, filter, max, cursor, ...o }),
  topic: ({ topic }, o) => client.topic(topic, o),
  topics: (page, o) => client.topicsPage({ ...page, ...o }),
  stats: (_, o) => client.stats(o),
  forecast: ({ topic, ...steps }, o) => client.forecast(topic, { ...steps, ...o }),
  forecast_topics: (steps, o) => client.forecastTopics({ ...steps, ...o }),
  rates: ({ topic }, o) => client.rates(topic, o),
  release_topic: ({ topic, ...how }, o) => client.releaseTopic(topic, { ...how, ...o }),
  reschedule: ({ topic, filter, ...how }, o) => client.reschedule(topic, filter, { ...how, ...o }),
  dead: ({ topic, ...how }, o) => client.dead(topic, { ...how, ...o }),
  dead_topics: ({ reason, ...how }, o) => client.deadTopics(reason, { ...how, ...o }),
  kick_dead: ({ reason, ...how }, o) => client.kickDead(reason, { ...how, ...o }),
  purge_dead: ({ reason, ...how }, o) => client.purgeDead(reason, { ...how, ...o }),
  pause: ({ topic, ...how }, o) => client.pause(topic, { ...how, ...o }),
  resume: ({ topic }, o) => client.resume(topic, o),
  settings: ({ topic }, o) => client.settings(topic, o),
  set_settings: ({ topic, settings }, o) => client.setSettings(topic, settings, o),
  change_settings: ({ topic, settings }, o) => client.changeSettings(topic, settings, o),
  delete_settings: ({ topic }, o) => client.deleteSettings(topic, o),
  all_settings: async (page, o) => ({ topics: await all(client.allSettings({ ...page, ...o })) }),
  schedules: async (page, o) => ({ schedules: await all(client.schedules({ ...page, ...o })) }),
  put_schedule: ({ name, schedule }, o) => client.putSchedule(name, schedule, o),
  schedule: ({ name }, o) => client.schedule(name, o),
  delete_schedule: ({ name }, o) => client.deleteSchedule(name, o),
  pause_schedule: ({ name }, o) => client.pauseSchedule(name, o),
  resume_schedule: ({ name }, o) => client.resumeSchedule(name, o),
  run_schedule: ({ name, key }, o) => client.runSchedule(name, { key, ...o }),
  schedule_runs: async ({ name }, o) => ({ runs: await client.scheduleRuns(name, o) }),
  preview_schedule: async ({ name, count }, o) => ({ runs: await client.previewSchedule(name, { count, ...o }) }),
  whoami: (_, o) => client.whoAmI(o),
  tokens: async (page, o) => ({ tokens: await all(client.tokens({ ...page, ...o })) }),
  token: ({ id }, o) => client.token(id, o),
  put_token: ({ id, ...token }, o) => client.putToken(id, token, o),
  rotate_token: ({ id, overlap }, o) => client.rotateToken(id, { overlap, ...o }),
  delete_token: ({ id }, o) => client.deleteToken(id, o),
  namespaces: async (_, o) => ({ namespaces: await client.namespaces(o) }),
  namespace: ({ name }, o) => client.namespace(name, o),
  put_namespace: ({ name, ...namespace }, o) => client.putNamespace(name, namespace, o),
  delete_namespace: ({ name }, o) => client.deleteNamespace(name, o),
  members: async (_, o) => ({ members: await client.members(o) }),
  preview_spec: async ({ spec, after, ...how }, o) => ({
    runs: await client.previewSpec(spec, { after: after && new Date(after), ...how, ...o }),
  }),
  health: (_, o) => client.health(o),
  clocks: (_, o) => client.clocks(o),
  verify: (_, o) => client.verify(o),
  transfer_leadership: async ({ id }, o) => ({ moved: await client.transferLeadership(id, o) }),
  remove_member: ({ id }, o) => client.removeMember(id, o),
  join: ({ addresses }, o) => client.join(addresses, o),
  leave: (_, o) => client.leave(o),
  reset_clock: (_, o) => client.resetClock(o),
  stream_open(request) {
    closeStream();
    stream = client.stream(request);
  },
  async stream_next(_, { deadline }) {
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

async function answer({ verb, args }) {
  if (!Object.hasOwn(verbs, verb)) {
    return { error: { code: "unknown_verb" } };
  }
  try {
    const { deadline, ...own } = args ?? {};
    return { ok: fromClient((await verbs[verb](toClient(own), { deadline })) ?? {}) };
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
