/**
 * Accounts and their users, as the operator sees them (api.md 2, `platform admin`). This port covers all accounts;
 * every other part of the store's port covers one. Adapters keep the invariants of journal.ts.
 */
import * as Context from "effect/Context";
import type { AccountRole } from "../../../domain/person/role.ts";
import type { Stored } from "../journal.ts";
import type { BadCursor } from "../errors.ts";
import type { Page, PageRequest } from "../page.ts";

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly sessionCap: number;
  readonly activeSessions: number;
  readonly queuedFires: number;
}

export interface User {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly role: AccountRole;
}

export class Accounts extends Context.Service<
  Accounts,
  {
    /** All of them, newest first. */
    readonly list: (request: PageRequest) => Stored<Page<Account>, BadCursor>;
    readonly create: (account: {
      readonly id: string;
      readonly name: string;
      readonly tier: string;
      readonly cap: number;
      readonly now: number;
    }) => Stored<Account>;
    /** Of one account, newest first. */
    readonly users: (accountId: string, request: PageRequest) => Stored<Page<User>, BadCursor>;
    readonly user: (id: string) => Stored<User | null>;
    /** Null if the account does not exist. */
    readonly createUser: (user: User & { readonly now: number }) => Stored<User | null>;
  }
>()("platform/store/Accounts") {}
