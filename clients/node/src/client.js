import { randomUUID } from "node:crypto";

import { notApplied, resultError, TarryError, unknown } from "./error.js";
import { Stream } from "./stream.js";
import { sleep } from "./time.js";
import { Transport } from "./transport.js";
import { fromWire, path, query, toWire } from "./wire.js";

// The longest wait that is asked for in one request: fetch gives up after 300 s of silence.
const maxWait = 240;

// A rest of a wait that is not worth another request, in ms.
const shortWait = 50;

// For how long a node may work on one sweep before it responds that there is more, in s.
const sweepTime = 20;

/** A client of a cluster. The types and what the calls do: index.d.ts. */
export class Client {
  #transport;

  /**
   * @param {string[]} addresses
   * @param {import("tarry").ClientOptions} [options]
   */
  constructor(addresses, options = {}) {
    this.#transport = new Transport(addresses, options);
  }

  // Jobs

  async add(job, options) {
    return this.#call({ method: "POST", path: "/v1/jobs", body: wireAdd(job), repeat: true }, options);
  }

  async addBatch(jobs, options) {
    const request = { method: "POST", path: "/v1/jobs/batch", body: { jobs: jobs.map(wireAdd) }, repeat: true };
    return this.#batch(request, jobs.length, options);
  }

  async addAll(jobs, options) {
    const body = { atomic: true, jobs: jobs.map(wireAdd) };
    const request = { method: "POST", path: "/v1/jobs/batch", body, repeat: true };
    return whole(await this.#batch(request, jobs.length, options));
  }

  async get(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}` }, options);
  }

  async history(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}/history` }, options);
  }

  async explain(id, options) {
    return this.#call({ method: "GET", path: path`/v1/jobs/${id}/explain` }, options);
  }

  async update(id, changes, options) {
    return this.#call({ method: "PATCH", path: path`/v1/jobs/${id}`, body: toWire(changes) }, options);
  }

  async delete(ref, { ifRevision, ifState, ...options } = {}) {
    const { id, token } = refOf(ref);
    const condition = query({ token, ifRevision, ifState });
    await this.#end({ method: "DELETE", path: path`/v1/jobs/${id}` + condition, repeat: true }, options);
  }

  list(filter, options) {
    return pages((cursor) => this.listPage(filter, cursor, options), "jobs");
  }

  async listPage({ topic, headers, ...filter }, cursor, options) {
    const base = topic === undefined ? "/v1/jobs" : path`/v1/topics/${topic}/jobs`;
    return this.#call({ method: "GET", path: base + query({ ...filter, cursor }, headers) }, options);
  }

  async deleteJobs(filter, options) {
    return this.#found("DELETE", "/v1/jobs", filter, undefined, options);
  }

  async updateJobs(filter, changes, options) {
    return this.#found("PATCH", "/v1/jobs", filter, changes, options);
  }

  async kickJobs(filter, { toTopic, ...options } = {}) {
    return this.#found("POST", "/v1/jobs/kick", filter, { toTopic }, options);
  }

  // Consuming

  async reserve({ topics, max, wait = 0, ttr, consumer }, options = {}) {
    const end = Date.now() + Math.round(wait * 1000);
    const left = () => Math.min(Math.max(end - Date.now(), 0) / 1000, maxWait);
    const body = () => ({ topics, max, wait: left(), ttr, consumer });
    for (;;) {
      // A reservation that is lost on its way expires, so asking again does no harm.
      const { jobs } = await this.#call({ method: "POST", path: "/v1/reserve", body, wait: left, repeat: true }, options);
      if (jobs.length > 0 || end - Date.now() <= shortWait) {
        return jobs;
      }
      // The node ended the wait early: it stops, or the wait is longer than one request's.
      if (!(await sleep(shortWait, options.signal))) {
        throw notApplied("the wait for a job was cancelled", options.signal.reason);
      }
    }
  }

  stream(stream, options) {
    return new Stream(this.#transport, stream, options);
  }

  async finish(ref, options) {
    const { id, token } = refOf(ref);
    await this.#end({ method: "POST", path: path`/v1/jobs/${id}/finish`, body: { token }, repeat: true }, options);
  }

  async finishBatch(refs, options) {
    const request = { method: "POST", path: "/v1/finish", body: { jobs: refs.map(refOf) }, repeat: true };
    const results = await this.#batch(request, refs.length, options);
    return results.map((result) => (result instanceof TarryError && !isGone(result) ? result : null));
  }

  async finishThen(ref, jobs, options) {
    const { id, token } = refOf(ref);
    // Not sent again after an unknown outcome: not_found would not say whether the jobs were added.
    const request = { method: "POST", path: path`/v1/jobs/${id}/finish`, body: { token, then: jobs.map(wireAdd) } };
    return whole(await this.#batch(request, jobs.length, options));
  }

  async touch(ref, { ttr, ...options } = {}) {
    return this.#step(ref, "touch", { ttr }, options, true);
  }

  async release(ref, { delay, priority, reason, ...options } = {}) {
    return this.#step(ref, "release", { delay, priority, reason }, options);
  }

  async bury(ref, { priority, reason, ...options } = {}) {
    return this.#step(ref, "bury", { priority, reason }, options);
  }

  async kick(id, { toTopic, ...options } = {}) {
    return this.#step(id, "kick", { toTopic }, options);
  }

  async move(ref, to, options) {
    return this.#step(ref, "move", { to }, options, true);
  }

  // Topics

  topics({ max, ...options } = {}) {
    return pages((after) => this.topicsPage({ after, max, ...options }), "topics");
  }

  async topicsPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/topics" + query({ after, max }) }, options);
  }

  async topic(name, options) {
    return this.#call({ method: "GET", path: path`/v1/topics/${name}` }, options);
  }

  async stats(options) {
    return this.#call({ method: "GET", path: "/v1/stats" }, options);
  }

  async pause(topic, { for: duration, until, ...options } = {}) {
    const body = { for: duration, until };
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/pause`, body, repeat: true }, options);
  }

  async resume(topic, options) {
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/resume`, repeat: true }, options);
  }

  async kickTopic(topic, { max, filter, rate, toTopic, ...options } = {}) {
    return this.#sweep(topic, "kick", { max, all: max === undefined, filter, rate, toTopic }, options);
  }

  async releaseTopic(topic, { consumer, max, filter, reason, ...options } = {}) {
    return this.#sweep(topic, "release", { consumer, max, all: max === undefined, filter, reason }, options);
  }

  async purge(topic, state, { max, filter, ...options } = {}) {
    return this.#sweep(topic, "purge", { state, max, all: max === undefined, filter }, options);
  }

  async moveTopic(topic, to, { states, ...options } = {}) {
    return this.#sweep(topic, "move", { to, states }, options);
  }

  async settings(topic, options) {
    return this.#call({ method: "GET", path: path`/v1/topics/${topic}/settings` }, options);
  }

  async setSettings(topic, settings, options) {
    return this.#settings("PUT", topic, settings, options);
  }

  async changeSettings(topic, settings, options) {
    return this.#settings("PATCH", topic, settings, options);
  }

  async deleteSettings(topic, options) {
    return this.#settings("DELETE", topic, undefined, options);
  }

  // Schedules

  async putSchedule(name, schedule, { ifRevision, ...options } = {}) {
    const body = toWire({ ...schedule, ifRevision });
    const repeat = ifRevision === undefined;
    return this.#call({ method: "PUT", path: path`/v1/schedules/${name}`, body, repeat }, options);
  }

  async schedule(name, options) {
    return this.#call({ method: "GET", path: path`/v1/schedules/${name}` }, options);
  }

  schedules({ max, ...options } = {}) {
    return pages((after) => this.schedulesPage({ after, max, ...options }), "schedules");
  }

  async schedulesPage({ after, max, ...options } = {}) {
    return this.#call({ method: "GET", path: "/v1/schedules" + query({ after, max }) }, options);
  }

  async deleteSchedule(name, { ifRevision, ...options } = {}) {
    const repeat = ifRevision === undefined;
    await this.#end({ method: "DELETE", path: path`/v1/schedules/${name}` + query({ ifRevision }), repeat }, options);
  }

  async pauseSchedule(name, options) {
    await this.#call({ method: "POST", path: path`/v1/schedules/${name}/pause`, repeat: true }, options);
  }

  async resumeSchedule(name, options) {
    await this.#call({ method: "POST", path: path`/v1/schedules/${name}/resume`, repeat: true }, options);
  }

  async runSchedule(name, { key, ...options } = {}) {
    const repeat = key !== undefined;
    return this.#call({ method: "POST", path: path`/v1/schedules/${name}/run`, body: { key }, repeat }, options);
  }

  async scheduleRuns(name, options) {
    return (await this.#call({ method: "GET", path: path`/v1/schedules/${name}/runs` }, options)).runs;
  }

  async previewSchedule(name, { count, ...options } = {}) {
    return (await this.#call({ method: "GET", path: path`/v1/schedules/${name}/preview` + query({ count }) }, options)).runs;
  }

  async previewSpec(spec, { signal, timeout, patience, ...times } = {}) {
    const request = { method: "POST", path: "/v1/schedules/preview", body: toWire({ spec, ...times }), repeat: true };
    return (await this.#call(request, { signal, timeout, patience })).runs;
  }

  // The cluster

  async members(options) {
    return (await this.#call({ method: "GET", path: "/v1/cluster/members" }, options)).members;
  }

  async health(options) {
    return this.#call({ method: "GET", path: "/v1/cluster/health" }, options);
  }

  // How the calls are made

  /** @returns {Promise<any>} */
  async #call(request, options) {
    return fromWire((await this.#transport.call(request, options)).reply);
  }

  /** A step of one job. */
  async #step(ref, verb, fields, options, repeat = false) {
    const { id, token } = refOf(ref);
    const body = toWire({ token, ...fields });
    return this.#call({ method: "POST", path: path`/v1/jobs/${id}/${verb}`, body, repeat }, options);
  }

  /** Something is to be gone: that it is not there after an attempt of ours is what was wanted. */
  async #end(request, options) {
    try {
      await this.#transport.call(request, options);
    } catch (error) {
      if (!(error instanceof TarryError && isGone(error))) {
        throw error;
      }
    }
  }

  /** A request of n items; the result of each, or its error. */
  async #batch(request, n, options) {
    const { reply, mayBeDone } = await this.#transport.call(request, options);
    if (reply.results?.length !== n) {
      throw unknown(`${n} items got ${reply.results?.length} results`);
    }
    return reply.results.map((result) => {
      if (result.success) {
        return fromWire(result);
      }
      const error = resultError(result);
      if (mayBeDone) {
        error.outcome = "unknown";
      }
      return error;
    });
  }

  async #sweep(topic, verb, fields, options) {
    const body = toWire(fields);
    return this.#call({ method: "POST", path: path`/v1/topics/${topic}/${verb}`, body, work: sweepTime }, options);
  }

  /** Does something to the jobs that a filter finds. */
  async #found(method, path, { headers, ...filter }, fields, options) {
    const found = query({ ...filter, all: filter.max === undefined }, headers);
    return this.#call({ method, path: path + found, body: fields && toWire(fields), work: sweepTime }, options);
  }

  async #settings(method, topic, settings, { ifRevision, ...options } = {}) {
    const body = settings && toWire(settings);
    const repeat = ifRevision === undefined; // without a condition, once more changes nothing
    return this.#call({ method, path: path`/v1/topics/${topic}/settings` + query({ ifRevision }), body, repeat }, options);
  }
}

/** An add as the server reads it. It gets its id here, once: so all attempts are one job. */
function wireAdd(job) {
  return toWire({ ...job, id: job.id || randomUUID() });
}

function refOf(ref) {
  return typeof ref === "object" ? { id: ref.id, token: ref.token } : { id: ref };
}

/** Reports whether something is not there after an attempt that may have removed it. */
function isGone(error) {
  return error.code === "not_found" && error.outcome === "unknown";
}

/** The results of a batch that is done as a whole. */
function whole(results) {
  const error = results.find((result) => result instanceof TarryError);
  if (error) {
    throw error;
  }
  return results;
}

async function* pages(page, member) {
  let next;
  let incomplete = false;
  do {
    const reply = await page(next);
    yield* reply[member];
    incomplete ||= reply.incomplete === true;
    next = reply.next;
  } while (next);
  if (incomplete) {
    throw new TarryError("jobs may be missing: the index of a header is being built", { code: "incomplete" });
  }
}
