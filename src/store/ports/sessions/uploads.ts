/**
 * Files for the first message of a session that does not exist yet: the table uploads.
 *
 *  U1 An upload belongs to the person who sent it. No one else's session gets it.
 *  U2 It ends when its session has it, when the request that waits with it is cancelled or expires, or at its limit.
 */
import * as Context from "effect/Context";
import type { AttachmentHead } from "../../../domain/conversation/attachment.ts";
import type { Stored } from "../journal.ts";
import type { Attachment } from "./conversations.ts";

/** How many bytes of uploads are kept for a project. */
export const UPLOADS_KEPT_MAX = 256 * 1024 * 1024;
/** How long an upload is kept that no session was asked for with, ms. */
export const UPLOAD_UNUSED_MS = 6 * 60 * 60 * 1000;

/** Whose uploads are meant. */
interface Owner {
  readonly projectId: string;
  readonly createdBy: string;
}

export class Uploads extends Context.Service<
  Uploads,
  {
    /** `full`: the project has no room for it. */
    readonly keep: (upload: Attachment & Owner & { readonly now: number }) => Stored<"kept" | "full">;
    /** Those of the named uploads that the person has, in the order of the names. */
    readonly heads: (owner: Owner, ids: readonly string[]) => Stored<readonly AttachmentHead[]>;
    /**
     * Keeps them for a session that was asked for.
     *
     * @param wish `fireId`: the request that may wait with them; null: the session begins now or never
     */
    readonly claim: (
      ids: readonly string[],
      wish: { readonly fireId: string | null; readonly until: number },
    ) => Stored<void>;
    readonly get: (id: string) => Stored<Attachment | null>;
    /** The session's conversation has its first message. Its uploads end. */
    readonly handedOver: (sessionId: string, ids: readonly string[]) => Stored<void>;
    /** One small step: removes ended ones (U2). @returns how many. 0: nothing is left to remove. */
    readonly prune: (now: number) => Stored<number>;
  }
>()("platform/store/Uploads") {}
