/** How the daemons of simulated sandboxes (programs/sandboxes/daemon-farm.ts) are told what to do. */

export const CONTROL = "control";
export const BARE = "bare";

/** A sandbox begins. */
export interface Opening {
  readonly id: string;
  readonly sessionId: string;
  readonly token: string;
}

/** Work for the agents of these sessions. It is answered with `Done` when all is done. */
export type Order =
  /** One turn: text grows by one token at a time, each with its instant (`stamp`). */
  | {
      readonly kind: "talk";
      readonly sessions: readonly string[];
      readonly tokens: number;
      readonly everyMs: number;
    }
  /** The same, while one more session says whole messages of one token each. */
  | {
      readonly kind: "messages";
      readonly session: string;
      readonly messages: number;
      readonly everyMs: number;
      readonly beside: readonly string[];
      readonly besideEveryMs: number;
    }
  /** The same tokens to each reader of the bare server. */
  | { readonly kind: "bare"; readonly tokens: number; readonly everyMs: number }
  /** One turn that runs tools with outputs of this many characters, one after the other. */
  | {
      readonly kind: "run";
      readonly session: string;
      readonly tools: number;
      readonly length: number;
    };
export interface Done {
  /** Tokens for each session or reader. */
  readonly tokens: number;
}

/** The present instant as a token: ms of the machine's monotonic clock, which all processes share. */
export const stamp = (): string => `${(Number(process.hrtime.bigint() / 1000n) / 1000).toFixed(3)} `;
