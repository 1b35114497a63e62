/** The addresses of this machine. They may be public and still lead to what is closed to others. */
import { networkInterfaces } from "node:os";

export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
