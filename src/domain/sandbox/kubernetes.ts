/** The settings of the provider `kubernetes`, and the names in a cluster that they have. */
import { isIP } from "node:net";
import * as Result from "effect/Result";
import { isImageReference } from "../environment/image.ts";

/** Sandboxes in a cluster. */
export interface KubernetesSettings {
  /** A kubeconfig file. Null means the service account of the service's own Pod. */
  readonly kubeconfig: string | null;
  readonly namespace: string;
  readonly runtimeImage: string;
  readonly image: string;
  /** Null means the cluster's default. */
  readonly runtimeClass: string | null;
  /** Names of Secrets in the namespace. */
  readonly pullSecrets: readonly string[];
  readonly egress: {
    /** Where it listens. */
    readonly host: string;
    /** Where sandboxes reach it: an IP address or a name. */
    readonly address: string;
    readonly port: number;
  };
}

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME_MAX = 253;
const DIGEST = /@sha256:[0-9a-f]{64}$/;

/** Whether it can name most objects of a cluster, for example a Secret: labels of DNS, joined by dots. */
export const isObjectName = (text: string): boolean =>
  text.length <= NAME_MAX && text.split(".").every((part) => LABEL.test(part));

/** The name of a namespace. */
export const parseNamespace = (text: string): Result.Result<string, string> =>
  LABEL.test(text)
    ? Result.succeed(text)
    : Result.fail("the name of a namespace: at most 63 lower-case letters, digits and -");

/** The name of a RuntimeClass. */
export const parseRuntimeClass = (text: string): Result.Result<string, string> =>
  isObjectName(text)
    ? Result.succeed(text)
    : Result.fail("the name of a RuntimeClass: lower-case letters, digits, - and .");

/** A reference to an image in a registry, with or without a digest. */
export const parseRegistryImage = (text: string): Result.Result<string, string> =>
  isImageReference(text.replace(DIGEST, ""))
    ? Result.succeed(text)
    : Result.fail("a reference to an image in a registry, for example images.example.com/team/tools:3");

/** An address to listen on. */
export const parseListenAddress = (text: string): Result.Result<string, string> =>
  isIP(text) === 0 ? Result.fail("an IP address") : Result.succeed(text);

/** An address to dial, without a port. One that means "every address of this machine" leads nowhere from elsewhere. */
export const parseDialHost = (text: string): Result.Result<string, string> =>
  (isIP(text) !== 0 || isObjectName(text)) && text !== "0.0.0.0" && text !== "::"
    ? Result.succeed(text)
    : Result.fail("an IP address or a host name that sandboxes can reach, without a port");
