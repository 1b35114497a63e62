/**
 * Bounds the bytes of webhook bodies that are in flight: 256 MiB in all, 64 MiB a trigger, 32 MiB an address
 * (api.md 1 "Bodies"). Beyond, a sender is told to come back before a byte of its body is read (threats.md W17).
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

const accountsOf = ({ trigger, address }: Sender): readonly Account[] => [
  { name: "all", limit: TOTAL_BYTES },
  { name: `trigger ${trigger}`, limit: TRIGGER_BYTES },
  { name: `address ${address}`, limit: ADDRESS_BYTES },
];

/** What one body holds of the budget: the bytes that have come. What is only announced would be anyone's to reserve. */
export interface Hold {
  /** Nothing is to be had at all: a body is refused before a byte of it is read. */
  readonly isFull: () => boolean;
  /** False where so much is not to be had: nothing more was taken. */
  readonly take: (bytes: number) => boolean;
  /** Gives everything back; once is enough, more does no harm. */
  readonly release: () => void;
}

export class BodyBudget {
  readonly #held = new Map<string, number>();

  /** Nothing is held yet. */
  open(sender: Sender): Hold {
    const accounts = accountsOf(sender);
    let taken = 0;
    const hasRoom = (bytes: number): boolean =>
      accounts.every(({ name, limit }) => (this.#held.get(name) ?? 0) + bytes <= limit);
    return {
      isFull: () => !hasRoom(1),
      take: (bytes) => {
        if (!hasRoom(bytes)) return false;
        for (const { name } of accounts) this.#held.set(name, (this.#held.get(name) ?? 0) + bytes);
        taken += bytes;
        return true;
      },
      release: () => {
        for (const { name } of accounts) {
          const left = (this.#held.get(name) ?? 0) - taken;
          if (left > 0) this.#held.set(name, left);
          else this.#held.delete(name);
        }
        taken = 0;
      },
    };
  }
}
