export { Client } from "./client.js";
export { TarryError } from "./error.js";
export { BuryError, Worker } from "./worker.js";
