/** What of the model a reader may use. */
import { ApiExportedMixin, type ApiItem } from '@microsoft/api-extractor-model'

/** Whether it can be imported. Other types are in the model because signatures name them. */
export function isPublic(item: ApiItem): boolean {
  return !ApiExportedMixin.isBaseClassOf(item) || item.isExported
}
