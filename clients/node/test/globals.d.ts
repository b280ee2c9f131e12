// What the sources use of Node, for compilers without Node's types.
declare module "node:crypto" {
  export function randomUUID(): string;
}
declare const process: {
  once(signal: string, listener: () => void): void;
  removeListener(signal: string, listener: () => void): void;
};
interface Buffer extends Uint8Array {
  toString(encoding?: string): string;
}
declare const Buffer: {
  from(value: string, encoding?: string): Buffer;
  from(value: ArrayBufferLike, offset: number, length: number): Buffer;
};
