/**
 * Bounds the bytes of webhook bodies in flight: 256 MiB in all, 64 MiB for a trigger, 32 MiB for an address (api.md 1
 * "Bodies"). Beyond that, a sender must retry later, before a byte of its body is read (threats.md W17).
 */
const MIB = 1024 * 1024;
const TOTAL_BYTES = 256 * MIB;
const TRIGGER_BYTES = 64 * MIB;
const ADDRESS_BYTES = 32 * MIB;

export interface Sender {
  readonly trigger: string;
  readonly address: string;
}

interface Account {
  readonly name: string;
  readonly limit: number;
}

const senderAccounts = ({ trigger, address }: Sender): readonly Account[] => [
  { name: "all", limit: TOTAL_BYTES },
  { name: `trigger ${trigger}`, limit: TRIGGER_BYTES },
  { name: `address ${address}`, limit: ADDRESS_BYTES },
];

/**
 * One body's share of the budget: the bytes that have arrived. Announced bytes do not count, or any sender could
 * reserve them.
 */
export interface Hold {
  /** The budget is used up: a body is refused before a byte of it is read. */
  readonly isFull: () => boolean;
  /** False if that many bytes are not available. Nothing was taken then. */
  readonly take: (bytes: number) => boolean;
  /** Returns all its bytes. Idempotent. */
  readonly release: () => void;
}

export class BodyBudget {
  readonly #held = new Map<string, number>();

  /** A hold without bytes. */
  open(sender: Sender): Hold {
    const accounts = senderAccounts(sender);
    let bytesHeld = 0;
    const hasRoom = (bytes: number): boolean =>
      accounts.every(({ name, limit }) => (this.#held.get(name) ?? 0) + bytes <= limit);
    return {
      isFull: () => !hasRoom(1),
      take: (bytes) => {
        if (!hasRoom(bytes)) return false;
        for (const { name } of accounts) this.#held.set(name, (this.#held.get(name) ?? 0) + bytes);
        bytesHeld += bytes;
        return true;
      },
      release: () => {
        for (const { name } of accounts) {
          const left = (this.#held.get(name) ?? 0) - bytesHeld;
          if (left > 0) this.#held.set(name, left);
          else this.#held.delete(name);
        }
        bytesHeld = 0;
      },
    };
  }
}
