/**
 * Files that a reader attaches to a message. Each is uploaded when it is chosen, so that the message can go out without a wait.
 *
 *  T1 A file that could not be attached stays with its reason until the reader removes it. Until then no message is sent:
 *     the reader would think that the agent has the file.
 */
import { upload } from "../api/api.ts";
import { type Attachment, COUNT_MAX, refusalOf } from "./files.ts";

/** A file in the composer. */
export interface Chosen {
  readonly key: number;
  readonly name: string;
  readonly bytes: number;
  /** Null until the service has it. */
  readonly attachment: Attachment | null;
  readonly problem: string | null;
}

export interface AttachmentListener {
  readonly changed: () => void;
  /** "": the reader tries again. */
  readonly told: (problem: string) => void;
}

export class Attachments {
  chosen: readonly Chosen[] = [];
  readonly #path: string;
  readonly #listener: AttachmentListener;
  #keys = 0;

  /** @param path of the session in the API */
  constructor(path: string, listener: AttachmentListener) {
    this.#path = path;
    this.#listener = listener;
  }

  /** Those that the service has. */
  get ready(): readonly Attachment[] {
    return this.chosen.flatMap(({ attachment }) => attachment ?? []);
  }

  /** Whether a file is on its way, or could not be attached (T1). */
  get isUnready(): boolean {
    return this.chosen.some(({ attachment }) => attachment === null);
  }

  readonly add = (files: Iterable<File>): void => {
    this.#listener.told("");
    for (const file of files) {
      if (this.chosen.length >= COUNT_MAX) {
        this.#listener.told(`A message has at most ${COUNT_MAX} files. “${file.name}” was not attached.`);
        break;
      }
      const others = this.chosen.reduce((sum, one) => sum + (one.problem === null ? one.bytes : 0), 0);
      const problem = refusalOf(file.size, others);
      const one = this.#put({ name: file.name, bytes: file.size, attachment: null, problem });
      if (problem === null) void this.#send(one, file);
    }
    this.#listener.changed();
  };

  readonly remove = (key: number): void => {
    this.chosen = this.chosen.filter((one) => one.key !== key);
    this.#listener.changed();
  };

  /** Replaces all. @param attachments that the service has */
  set(attachments: readonly Attachment[]): void {
    this.chosen = [];
    for (const attachment of attachments) {
      const { name, bytes } = attachment;
      this.#put({ name, bytes, attachment, problem: null });
    }
    this.#listener.changed();
  }

  #put(one: Omit<Chosen, "key">): Chosen {
    this.#keys += 1;
    const chosen = { key: this.#keys, ...one };
    this.chosen = [...this.chosen, chosen];
    return chosen;
  }

  async #send({ key }: Chosen, file: File): Promise<void> {
    const change = await upload(`${this.#path}/attachments?name=${encodeURIComponent(file.name)}`, file).then(
      (attachment: Attachment) => ({ attachment }),
      (error: unknown) => ({ problem: error instanceof Error ? error.message : String(error) }),
    );
    this.chosen = this.chosen.map((one) => (one.key === key ? { ...one, ...change } : one));
    this.#listener.changed();
  }
}
