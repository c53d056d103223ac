/* gnomon.h: everything. */
#ifndef GNOMON_H
#define GNOMON_H

#include <gnomon/base.h>
#include <gnomon/choose.h>
#include <gnomon/comm.h>
#include <gnomon/dedup.h>
#include <gnomon/gemm.h>
#include <gnomon/hosvd.h>
#include <gnomon/io.h>
#include <gnomon/join.h>
#include <gnomon/lsh.h>
#include <gnomon/lstsq.h>
#include <gnomon/matrix.h>
#include <gnomon/operator.h>
#include <gnomon/project.h>
#include <gnomon/quality.h>
#include <gnomon/rabitq.h>
#include <gnomon/search.h>
#include <gnomon/sparse_index.h>
#include <gnomon/svd.h>
#include <gnomon/tensor.h>

#endif
