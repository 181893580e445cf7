# The status page with 10 000 Services again, with nothing beside it: here no task
# may take more than 100 ms.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The status page's longest task."""

import test_status_page as page

browser = page.browser
test_ten_thousand_services = page.test_ten_thousand_services
