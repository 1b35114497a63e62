/** Rows of the tables of connectors. */
import type { CredentialHolder } from "../../../../src/domain/connector/connector-credential.ts";
import type { TableSet } from "../tables.ts";
import type { NewFlow, StoredGrant } from "../../../../src/store/ports/connectors/connector-grants.ts";
import type {
  SealedCredential,
  StoredCredential,
} from "../../../../src/store/ports/connectors/connectors.ts";

export interface ConnectorCredentialRow
  extends
    Omit<SealedCredential, "envelope">,
    Omit<StoredCredential, "slug" | "personId" | "origin" | "kind"> {
  /** Null: removed; the row keeps the version. */
  readonly envelope: Uint8Array | null;
}

export interface ConnectorGrantRow extends StoredGrant {
  readonly lease: { readonly holder: string; readonly until: number } | null;
}
export interface ConnectorFlowRow extends Omit<NewFlow, "now"> {
  /** Null: its person has not opened it. */
  readonly browserHash: string | null;
  /** The session of the page in her browser. */
  readonly browserId: string | null;
}

export const keyOfHolder = ({ projectId, slug, personId }: CredentialHolder): string =>
  `${projectId} ${slug} ${personId ?? "-"}`;

const orderOf = ({ slug, personId }: CredentialHolder): string => `${slug} ${personId ?? ""}`;

/** The project's rows and a person's own, in the order of slugs. */
export const visibleTo = <A extends CredentialHolder>(
  rows: readonly A[],
  { projectId, personId }: { readonly projectId: string; readonly personId: string },
): readonly A[] =>
  rows
    .filter((row) => row.projectId === projectId && (row.personId === null || row.personId === personId))
    .toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));

/** Rows of people who are deactivated. */
export const leftOf = (
  { users }: Pick<TableSet, "users">,
  rows: readonly CredentialHolder[],
): readonly CredentialHolder[] =>
  rows
    .filter(({ personId }) => personId !== null && typeof users.get(personId)?.deactivatedAt === "number")
    .slice(0, 100)
    .map(({ projectId, slug, personId }) => ({ projectId, slug, personId }));
