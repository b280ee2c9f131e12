import { createServer } from "node:http";

/**
 * A pretended node of the cluster, which notes the requests and replies as told: with the
 * status, HTTP headers (http) and JSON of a reply; by cutting the connection, if it is "cut".
 * A stream is what the function writes itself: then it gives nothing.
 *
 * @param {(request: {method: string, path: string, body: any}, response: import("node:http").ServerResponse) => any} reply
 */
export async function startNode(t, reply) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) {
      text += chunk;
    }
    const seen = { method: request.method, path: request.url, body: text && JSON.parse(text) };
    if (seen.path !== "/v1/cluster/members" || node.countMembers) {
      requests.push(seen);
    }
    const made = seen.path === "/v1/cluster/members" ? { members: node.members } : await reply(seen, response);
    if (made === "cut") {
      request.socket.destroy();
    } else if (made !== undefined) {
      const { status = 200, http = {}, ...json } = made;
      response.writeHead(status, { "Content-Type": "application/json", ...http });
      response.end(JSON.stringify({ success: status < 300, ...json }));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const node = { address: `127.0.0.1:${server.address().port}`, server, requests, members: [], countMembers: false };
  return node;
}

/** An address where nobody listens. */
export async function deadAddress() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

export const notApplied = { status: 503, code: "not_applied", error: "no leader", outcome: "not_applied" };
export const added = { id: "a", seq: 1, state: "ready", due_at: "2026-11-21T15:22:53.758Z", revision: 1, existing: false };
export const job = { id: "a", topic: "t", state: "ready" };
