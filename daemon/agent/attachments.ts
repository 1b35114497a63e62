/**
 * Files that people attached to messages, where the agent reads them: outside the checkout, so that no commit takes them,
 * and where the agent cannot write.
 *
 *  A1 The daemon takes only attachments of the message that it was given last, and only with the right bytes.
 */
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attachmentName, type AttachmentHead } from "../../src/domain/conversation/attachment.ts";
import { invalid, refusal, type ControlRefusal } from "../http/answer.ts";

/** An attachment in this sandbox. */
export interface AttachedFile extends AttachmentHead {
  /** Absolute. */
  readonly path: string;
}

const NOT_WANTED = refusal(404, "not_found", "No message that was handed over has this attachment.");

export class Attachments {
  readonly #directory: string;
  readonly #wanted = new Map<string, AttachmentHead>();
  readonly #kept = new Map<string, AttachedFile>();

  /** @param directory made with the first file */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The ids of those that are not here. They are the ones that `keep` takes from now on. */
  missing(message: readonly AttachmentHead[]): readonly string[] {
    this.#wanted.clear();
    for (const head of message) if (!this.#kept.has(head.id)) this.#wanted.set(head.id, head);
    return [...this.#wanted.keys()];
  }

  /** Those that are here, in the message's order. */
  files(message: readonly AttachmentHead[]): readonly AttachedFile[] {
    return message.flatMap(({ id }) => this.#kept.get(id) ?? []);
  }

  /** How many bytes the attachment has. Null if it is not wanted. */
  size(id: string): number | null {
    return this.#wanted.get(id)?.bytes ?? null;
  }

  /** Takes an attachment's bytes. */
  keep(id: string, content: Uint8Array): { readonly done: { readonly stored: true } } | ControlRefusal {
    if (this.#kept.has(id)) return { done: { stored: true } };
    const head = this.#wanted.get(id);
    if (head === undefined) return NOT_WANTED;
    if (createHash("sha256").update(content).digest("hex") !== head.sha256)
      return invalid("", "must be the attachment's own bytes");
    const directory = join(this.#directory, id);
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    const path = join(directory, attachmentName(head.name));
    writeFileSync(`${directory}.new`, content, { mode: 0o644 });
    renameSync(`${directory}.new`, path);
    this.#wanted.delete(id);
    this.#kept.set(id, { ...head, path });
    return { done: { stored: true } };
  }
}
