/** dashboard/wire-schemas.d.ts: the types of the API's answers for the page, from the API's own definitions. */
import * as OpenApi from "effect/http-api/OpenApi";
import { Api } from "../src/assembly/api.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly (string | number | boolean)[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
}

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const comment = ({ description }: Schema): string =>
  description === undefined ? "" : `/** ${description.replaceAll("*/", "*\\/")} */ `;

const record = ({ properties = {}, required = [], additionalProperties }: Schema): string => {
  const fields = Object.entries(properties).map(
    ([name, field]) => `${comment(field)}${name}${required.includes(name) ? "" : "?"}: ${typeText(field)};`,
  );
  if (fields.length > 0) return `{ ${fields.join(" ")} }`;
  const value = typeof additionalProperties === "object" ? typeText(additionalProperties) : "unknown";
  return `Record<string, ${value}>`;
};

/** A JSON Schema as a TypeScript type. */
const typeText = (schema: Schema): string => {
  if (schema.$ref !== undefined) return schema.$ref.split("/").at(-1) ?? "unknown";
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeText).join(" | ");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "number":
    case "integer":
      return "number";
    case "array":
      return `(${typeText(schema.items ?? {})})[]`;
    case "object":
      return record(schema);
    default:
      return "unknown";
  }
};

/** The text of the file: one type a line. */
export const wireSchemas = (): string => {
  const { paths, components } = OpenApi.fromApi(Api) as unknown as Document;
  const answers = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) => {
      const schema = responses["200"]?.content?.["application/json"]?.schema;
      const isNameless = schema?.type === "object" && schema.properties !== undefined;
      return isNameless ? [`  "${method.toUpperCase()} ${path}": ${typeText(schema)};`] : [];
    }),
  );
  const types = Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema)}export type ${name} = ${typeText(schema)};`,
  );
  return `/** The API's answers. \`npm run docs\` writes them from the API's definitions (src/http/api). Instants are ISO 8601 strings. */
${types.join("\n")}

/** The answers that have no name of their own, by request. */
export interface Answers {
${answers.join("\n")}
}
`;
};
