/** Saves a secret. The key of a model provider is tried first, and saved without a try only if the reader wishes that. */
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";

/** The label of a button that saves what the provider refuses, or gives no answer about. */
export const UNTRIED = "Save without a try";

/** Whether the provider of a key does not accept it. Nothing was saved then. */
export const isKeyRefused = (error: unknown): boolean =>
  error instanceof ApiError && error.code === "provider_refused";

/** Ids of the project, and the secret's name. */
export type SecretPlace = readonly [pid: string, name: string];
export interface NewSecret {
  readonly value: string;
  readonly service?: boolean;
  readonly previous_valid_ms?: number;
}

/** @throws ApiError with the provider's own words */
export const saveSecret = (
  [pid, name]: SecretPlace,
  secret: NewSecret,
  isUntried: boolean,
): Promise<Answer<"PUT /v1/projects/:pid/secrets/:name">> =>
  request("PUT /v1/projects/:pid/secrets/:name", {
    params: { pid, name },
    payload: { ...secret, ...(!isUntried && { try: true }) },
  });
