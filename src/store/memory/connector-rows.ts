/** Rows of the tables of connectors. */
import type { NewFlow, StoredGrant } from "../ports/connector-grants.ts";
import type { SealedCredential, StoredCredential } from "../ports/connectors.ts";

export interface ConnectorCredentialRow
  extends Omit<SealedCredential, "envelope">, Omit<StoredCredential, "slug" | "origin" | "kind"> {
  /** Null: removed; the row keeps the version. */
  readonly envelope: Uint8Array | null;
}

export interface ConnectorGrantRow extends StoredGrant {
  readonly lease: { readonly holder: string; readonly until: number } | null;
}
export interface ConnectorFlowRow extends Omit<NewFlow, "now"> {
  /** Null: its person has not opened it. */
  readonly browserHash: string | null;
}
