// What the sources use of Node, for compilers without Node's types.
declare module "node:crypto" {
  export function randomUUID(): string;
}
declare module "node:fs" {
  export function openSync(path: string | URL, flags: string): number;
  export function readSync(file: number, buffer: Uint8Array): number;
  export function closeSync(file: number): void;
  export function statSync(path: string | URL, options: { bigint: true }): { ino: bigint; mtimeNs: bigint; size: bigint };
}
declare module "node:net" {
  export class BlockList {
    addSubnet(net: string, prefix: number, type: string): void;
    addAddress(address: string, type: string): void;
    check(address: string, type: string): boolean;
  }
  export function isIP(text: string): number;
}
declare module "node:http" {
  const http: any;
  export default http;
}
declare module "node:https" {
  const https: any;
  export default https;
}
declare module "node:stream" {
  export const Readable: { toWeb(stream: any): ReadableStream<Uint8Array> };
}
declare const process: {
  once(signal: string, listener: () => void): void;
  removeListener(signal: string, listener: () => void): void;
};
interface Buffer extends Uint8Array {
  toString(encoding?: string, start?: number, end?: number): string;
}
declare const Buffer: {
  alloc(size: number): Buffer;
  from(value: string, encoding?: string): Buffer;
  from(value: ArrayBufferLike, offset: number, length: number): Buffer;
};
